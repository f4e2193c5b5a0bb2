"""``draftline doctor``: facts, problems, exit status."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inference import paths
from inference.api import DEFAULT_MODEL, EngineConfig
from inference.diagnosis import files, machine
from inference.diagnosis.measure import (
    Choices,
    Kernel,
    Measured,
    MemoryUse,
    SelfTest,
    Speed,
    StartUp,
)
from inference.diagnosis.problems import Problem, find_problems
from inference.sharing.inspect import Running
from inference.weights import convert, store
from lsp_server.commands import doctor
from lsp_server.commands.doctor_report import print_report
from lsp_server.statistics import Totals
from tests.tiny_models import make_drafter, make_tiny


def draftline(*arguments: str) -> int:
    parser = argparse.ArgumentParser("draftline")
    doctor.add_arguments(parser.add_subparsers(required=True))
    return doctor.run(parser.parse_args(["doctor", *arguments]))


def of_json(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one object on stdout."""
    values = json.loads(capfd.readouterr().out)
    assert isinstance(values, dict)
    return values


def test_json_of_a_model(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    looping_model: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path))  # one that holds nothing else
    assert draftline("--json", "--model", str(looping_model), "--context", "512") == 0
    report = of_json(capfd)
    assert report["works"] is True
    assert set(report) == {
        "works",
        "versions",
        "python_ms",
        "machine",
        "files",
        "measured",
        "problems",
        "use",
        "engines",
    }
    assert {"draftline", "python", "torch", "transformers", "tokenizers", "pygls"} <= set(report["versions"])
    assert report["machine"]["cores"]["usable"] >= 1
    assert report["machine"]["memory"]["available"] > 0
    assert report["files"]["home"] == str(tmp_path)
    measured = report["measured"]
    assert set(measured["speed"]["forward_ms"]) == {"1", "8", "16"}
    assert measured["speed"]["prefill_tokens_per_s"] > 0
    assert measured["self_test"] == {
        "tokens": 40,
        "blocks": [1, 3, 8, 16, 40],
        "differing": [],
        "exact": True,
    }
    assert measured["choices"]["bit_exact"] is True
    assert sum(kernel["chosen"] for kernel in measured["choices"]["kernels"]) == 1
    memory = measured["memory"]
    assert memory["need"] > memory["packed"] > 0
    assert memory["kv_budget"] == 512 << 20 and memory["kv_used"] == 0 and memory["kv_numerics"] == "fp32"
    assert memory["slots"] == memory["kv_budget"] // memory["slot"]
    assert memory["need"] == memory["private"] + memory["kv_budget"]
    assert measured["start_up"]["steps"]["pack"] > 0
    assert measured["fill_in_the_middle"] is True
    compared = {cost["numerics"]: cost for cost in measured["compared"]}
    assert list(compared) == ["int8", "nf4", "llm-int8", "bf16", "fp32"]
    assert [name for name, cost in compared.items() if cost["loaded"]] == ["int8"]
    for cost in compared.values():
        assert set(cost["linear_ms"]) == {"1", "16"} and min(cost["linear_ms"].values()) > 0
        assert cost["reason"] == ""
    bytes_of = {name: cost["weight_bytes"] for name, cost in compared.items()}
    assert bytes_of["nf4"] < bytes_of["llm-int8"] < bytes_of["bf16"] < bytes_of["fp32"]
    converted = [file for file in report["files"]["stored"] if file["source"] == str(looping_model)]
    assert [file["kind"] for file in converted] == ["converted"]


def test_the_choice_of_kernels_is_stored_until_a_fresh_one_is_wanted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    looping_model: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path))
    switches = ("--model", str(looping_model), "--context", "512")

    def chosen(*more: str) -> dict[str, Any]:
        assert draftline("--json", *switches, *more) == 0
        choices = of_json(capfd)["measured"]["choices"]
        assert isinstance(choices, dict)
        return choices

    first, again = chosen(), chosen()
    assert first["kernels_chosen"] == "now" and first["kernels_file"].startswith(str(tmp_path))
    assert again["kernels_chosen"].startswith("20") and again["kernels"] == first["kernels"]
    used = next(kernel for kernel in first["kernels"] if kernel["chosen"])
    assert used["exact"] and used["problem"] == ""
    assert {"1", "8", "16", "32", "128"} >= set(used["row_ms"])
    assert draftline(*switches) == 0
    text = capfd.readouterr().out
    assert f"on {again['kernels_chosen']}, checked now; stored in {first['kernels_file']}" in text
    assert f"{used['name']}: exact" in text and "<- used" in text
    assert chosen("--fresh")["kernels_chosen"] == "now"


def test_report_for_people(tiny_home: Path, looping_model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert draftline("--model", str(looping_model), "--context", "512") == 0
    text = capfd.readouterr().out
    assert "nf4 " in text and "16 rows:" in text and "<- loaded" in text
    for title in ("Versions", "Machine", "Files", "Choices", "Memory", "Start-up", "Speed", "Exactness"):
        assert f"{title}\n" in text
    assert "all logits have equal bits" in text
    assert "\x1b" not in text  # no terminal, no colours
    assert str(tiny_home) in text  # whole, to be copied


def test_a_draft_model(
    tmp_path: Path, tiny_home: Path, looping_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    draft = make_drafter(tmp_path / "draft", looping_model)
    switches = ("--model", str(looping_model), "--draft-model", str(draft), "--context", "512")
    assert draftline(*switches) == 0
    text = capfd.readouterr().out
    assert f"draft model         {draft}" in text
    assert "of the private weights" in text and "for a drafted token" in text
    assert draftline("--model", str(looping_model), "--draft-model", "no-such-model") == 1
    assert "unknown-model" in capfd.readouterr().out


def test_without_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    assert draftline("--json") == 1
    report = of_json(capfd)
    assert report["works"] is False and report["measured"] is None
    problem = next(problem for problem in report["problems"] if problem["code"] == "model-not-fetched")
    assert problem["severity"] == "error"
    assert f"draftline model fetch {DEFAULT_MODEL}" in problem["next_step"]
    assert not (tmp_path / "home" / "downloads").exists()
    assert draftline() == 1
    text = capfd.readouterr().out
    assert "error: model-not-fetched" in text and "cannot work here" in text


def test_unknown_model_and_wrong_usage(tiny_home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert draftline("--json", "--model", "no-such-model") == 1
    assert of_json(capfd)["problems"][0]["code"] == "unknown-model"
    assert draftline("--context", "1") == 2
    captured = capfd.readouterr()
    assert captured.out == "" and "--context" in captured.err


def test_missing_package(
    tiny_home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("torch", "a-package-nobody-has"))
    assert draftline("--json") == 1
    report = of_json(capfd)
    assert report["versions"]["a-package-nobody-has"] == ""
    assert report["problems"][0]["code"] == "package-missing"
    monkeypatch.setattr(doctor, "PACKAGES", ("torch", "a-package-nobody-has"))
    monkeypatch.setattr(doctor, "FOR_SOME", ("a-package-nobody-has",))
    found: list[Problem] = []
    doctor._versions(found)
    assert [(problem.code, problem.severity) for problem in found] == [("package-missing", "warning")]


def test_stale_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLINE_HOME", str(tmp_path / "home"))
    model = make_tiny(tmp_path / "tiny")
    prepared = store.prepare(str(model), "int8")
    config = EngineConfig(model=str(model))
    assert [file.stale for file in files.inspect(config).stored] == [""]

    interrupted = paths.models_dir() / ".other-int8-0123456789ab.tmp"
    interrupted.mkdir()
    (interrupted / "model.safetensors").write_bytes(b"x" * 100)
    broken = paths.models_dir() / "broken-int8-0123456789ab"
    broken.mkdir()
    for file in model.iterdir():
        file.unlink()
    model.rmdir()
    stored = {Path(file.path).name: file for file in files.inspect(config).stored}
    assert "interrupted" in stored[interrupted.name].stale
    assert stored[interrupted.name].bytes == 100
    assert "missing" in stored[broken.name].stale
    assert "gone" in stored[prepared.path.name].stale

    manifest = json.loads((prepared.path / convert.MANIFEST).read_text())
    manifest["converter_version"] = -1
    (prepared.path / convert.MANIFEST).write_text(json.dumps(manifest))
    stored = {Path(file.path).name: file for file in files.inspect(config).stored}
    assert "another version" in stored[prepared.path.name].stale
    (problem,) = (
        problem
        for problem in find_problems(config, HOST, files.inspect(config), None)
        if problem.code == "stale-files"
    )
    assert problem.severity == "note" and str(interrupted) in problem.message


GB = 10**9
HOST = machine.Machine(
    "Linux",
    machine.Cores("CPU", 4, None, 4.0, (0.0, 0.0, 0.0), ()),
    machine.Memory(16 * GB, 12 * GB, 0, 0, None, 0.0),
    machine.Disk("/home", 100 * GB, 50 * GB, True),
)
FILES = files.ModelFiles("/home", DEFAULT_MODEL, "/home/m.gguf", True, GB // 2, ())
MEASURED = Measured(
    "tiny",
    Choices(
        "cpu", "AVX2", 2, "int8",
        (Kernel("onednn-u8", True, 0.1, True), Kernel("float-blocks", True, 1.0, False)),
        (1, 4, 16), True, "", True, (),
    ),
    StartUp(1.0, 1.0, {"pack": 1.0}),
    MemoryUse(GB, GB, None, GB // 10, 5, 4096, GB, GB, GB // 2, 0, "fp32", GB // 2),
    Speed({1: 30.0, 8: 40.0, 16: 50.0}, 33.0, 500.0),
    SelfTest(40, (1, 40), ()),
    True,
)  # fmt: skip
CONFIG = EngineConfig()


def codes(
    host: machine.Machine = HOST, stored: files.ModelFiles = FILES, measured: Measured | None = MEASURED
) -> list[str]:
    return [problem.code for problem in find_problems(CONFIG, host, stored, measured)]


def test_no_problems() -> None:
    assert codes() == []


def test_cores() -> None:
    busy = replace(HOST.cores, free=1.2, busy=(machine.BusyProcess(7, "compiler", 2.8),))
    (problem,) = find_problems(CONFIG, replace(HOST, cores=busy), FILES, MEASURED)
    assert problem.code == "cores-busy" and problem.severity == "warning"
    assert "compiler (pid 7" in problem.message and "--threads 1" in problem.next_step
    few = replace(HOST.cores, quota=1.5)
    assert codes(replace(HOST, cores=few)) == ["too-many-threads"]
    # A model on another device does not mind busy cores.
    config = replace(CONFIG, device="cuda", numerics="bf16", threads=2)
    assert find_problems(config, replace(HOST, cores=busy), FILES, None) == []


def test_memory() -> None:
    assert codes(replace(HOST, memory=replace(HOST.memory, available=GB))) == ["memory-low"]
    assert codes(replace(HOST, memory=replace(HOST.memory, limit=GB))) == ["memory-limit"]
    assert codes(replace(HOST, memory=replace(HOST.memory, pressure=40.0))) == ["memory-pressure"]
    swapping = replace(HOST.memory, swap_total=GB, swap_used=GB - 1)
    assert codes(replace(HOST, memory=swapping)) == ["swap-in-use"]


def test_disk() -> None:
    assert codes(replace(HOST, disk=replace(HOST.disk, free=GB))) == ["disk-low"]
    missing = replace(FILES, original=None, ready=False)
    assert codes(replace(HOST, disk=replace(HOST.disk, free=GB)), missing, None) == ["disk-full"]
    locked = replace(HOST, disk=replace(HOST.disk, writable=False))
    assert [p.severity for p in find_problems(CONFIG, locked, FILES, MEASURED)] == ["warning"]
    assert [p.severity for p in find_problems(CONFIG, locked, replace(FILES, ready=False), None)] == ["error"]


def test_model() -> None:
    other_bits = replace(MEASURED, self_test=SelfTest(40, (1, 40), (1,)))
    (problem,) = find_problems(CONFIG, HOST, FILES, other_bits)
    assert (problem.code, problem.severity) == ("not-exact", "error")
    honest = replace(other_bits, choices=replace(MEASURED.choices, bit_exact=False, notes=("Because.",)))
    (problem,) = find_problems(CONFIG, HOST, FILES, honest)
    assert (problem.code, problem.severity) == ("exactness-not-promised", "warning")
    assert "Because." in problem.message
    first, second = MEASURED.choices.kernels
    kernels = (replace(first, exact=False, chosen=False), replace(second, chosen=True))
    assert codes(measured=replace(MEASURED, choices=replace(MEASURED.choices, kernels=kernels))) == [
        "slow-kernel"
    ]
    assert codes(measured=replace(MEASURED, fill_in_the_middle=False)) == ["no-fim"]


def test_report_with_everything_wrong_can_be_printed() -> None:
    host = machine.Machine(
        "Linux",
        machine.Cores("CPU", 4, 1.0, 0.0, None, (machine.BusyProcess(1, "[x]", 3.0),)),
        machine.Memory(GB, GB, GB, GB, GB, 50.0),
        machine.Disk("/home", GB, 1, False),
    )
    measured = replace(MEASURED, self_test=SelfTest(40, (1, 40), (1,)), fill_in_the_middle=False)
    problems = tuple(find_problems(CONFIG, host, FILES, measured))
    use = Totals({"requests": 9, "shown": 4}, {"stale": 5}, {"cache": 4}, [7, 30]).report()
    engines = (
        Running(4711, "tiny", "ready", 2, 1, GB, "/run/a.log"),
        Running(4712, "", "silent", 0, 0, None, "/run/b.log"),
    )
    report = doctor.Report(
        {"draftline": "0", "torch": ""}, 1.0, host, FILES, measured, problems, use, engines
    )
    out = StringIO()
    print_report(report, Console(file=out))
    text = out.getvalue()
    for problem in problems:
        assert problem.code in text and problem.next_step in text
    for words in (
        "[x]",
        "pid 4711",
        "tiny: ready, 2 attached, ",
        "silent, it does not answer",
        "/run/b.log",
        "onednn-u8: exact, not timed",
        "OTHER BITS",
        "NOT WRITABLE",
        "Use so far",
        "4 (cache 4)",
        "stale 5",
    ):
        assert words in text
    json.dumps(doctor.as_json(report), allow_nan=False)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("some avg10=1.00 avg60=2.50 avg300=0.00 total=9\nfull avg10=0.00 avg60=9.00 total=0\n", 2.5),
        ("", None),
        ("full avg60=1.00\n", None),
    ],
)
def test_pressure(text: str, share: float | None) -> None:
    assert machine.parse_pressure(text) == share


def test_looking_at_this_machine(tmp_path: Path) -> None:
    host = machine.look(tmp_path / "not" / "yet", seconds=0.05)
    assert host.disk.writable and host.disk.free > 0
    assert 0 <= host.cores.free <= host.cores.usable
    assert 0 < machine.private_bytes() < host.memory.total
    assert machine.seconds_since_start() > 0
