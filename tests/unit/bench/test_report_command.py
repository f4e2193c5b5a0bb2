"""``draftline bench report`` and the files that it reads."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from bench.journal import BadResults, Journal, load
from bench.records import to_json
from lsp_server.cli import main
from tests.unit.bench.made_up_records import call, forward, item, key, prefill, run

GOLDEN = Path(__file__).parents[2] / "golden" / "bench"
RESULTS = GOLDEN / "results.jsonl"


def _report(*arguments: str | Path) -> int:
    return main(["bench", "report", *map(str, arguments)])


def test_prints_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert _report(RESULTS) == 0
    assert capsys.readouterr().out == (GOLDEN / "report.md").read_text(encoding="utf-8")


def test_makes_a_file_and_then_changes_only_its_tables(tmp_path: Path) -> None:
    out = tmp_path / "new" / "RESULTS.md"
    assert _report(RESULTS, "--out", out) == 0
    made = out.read_text(encoding="utf-8")
    tables = (GOLDEN / "report.md").read_text(encoding="utf-8")
    assert tables in made
    out.write_text("My words.\n" + made.replace(tables, "| old |\n") + "More words.\n", encoding="utf-8")
    assert _report(RESULTS, "--out", out) == 0
    assert out.read_text(encoding="utf-8") == "My words.\n" + made + "More words.\n"


def test_a_file_without_markers_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "thesis.md"
    out.write_text("# Years of work\n", encoding="utf-8")
    assert _report(RESULTS, "--out", out) == 2
    assert out.read_text(encoding="utf-8") == "# Years of work\n"
    assert "<!-- bench:begin -->" in capsys.readouterr().err


def test_missing_and_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _report(tmp_path / "none.jsonl") == 2
    assert "none.jsonl is no file" in capsys.readouterr().err
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("\n".join([lines[0], "{", *lines[1:]]), encoding="utf-8")
    assert _report(damaged) == 1
    assert "damaged.jsonl:2 is no line of a results file" in capsys.readouterr().err
    damaged.write_text("\n".join(lines[1:]), encoding="utf-8")
    assert _report(damaged) == 1
    assert "whose first line is missing" in capsys.readouterr().err
    damaged.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert _report(damaged) == 1
    damaged.write_text("", encoding="utf-8")
    assert _report(damaged) == 1
    assert "no results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ms": "fast"}, "ms"),
        ({"outcome": "perhaps"}, "outcome"),
        ({"record": "secret"}, "is no record"),
        ({"run": 5}, "is no record"),
    ],
)
def test_wrong_values(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    results = run(key())
    path = tmp_path / "a.jsonl"
    line = {**to_json(results.records[0], "a"), **change}
    path.write_text(f"{json.dumps(to_json(results.run, 'a'))}\n{json.dumps(line)}\n", encoding="utf-8")
    with pytest.raises(BadResults, match=f"a.jsonl:2.*{reason}"):
        load([path])


def test_fields_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    results = run(key())
    path = tmp_path / "a.jsonl"
    lines = [to_json(results.run, "a"), {**to_json(results.records[0], "a"), "mood": "good"}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert load([path])[0].records == results.records


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    records = [
        key(text="π\u2028\n"),
        item(mapped_bytes=None),
        call(steps=[[1, 2, 1, 3, 4.5]]),
        forward(1, 2.5),
    ]
    with Journal(path, run().run) as journal:
        for record in records:
            journal.add(record)
    (found,) = load([path])
    assert (found.id, found.run, found.records) == (journal.id, journal.run, records)


def test_a_killed_run_leaves_an_incomplete_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path, run().run) as journal:
        journal.add(key())
        journal.add(key(text="é"))
    # Cut inside of a character, and appended to by the next run.
    cut = path.read_bytes()
    end = cut.rindex("é".encode()) + 1
    path.write_bytes(cut[:end])
    assert _report(path) == 0
    told = capsys.readouterr()
    assert "a.jsonl:3 is incomplete" in told.err
    assert "| keys asked" in told.out
    monkeypatch.setattr("bench.journal.os.getpid", lambda: 0)  # as from another process
    with Journal(path, run().run) as journal:
        journal.add(key(ms=1.0))
        journal.add(key(ms=2.0))
    warnings: list[str] = []
    first, second = load([path], warnings.append)
    assert (first.records, second.records) == ([key()], [key(ms=1.0), key(ms=2.0)])
    assert len(warnings) == 1


def test_a_broken_line_within_a_run_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path, run().run) as journal:
        journal.add(key())
        journal.add(key())
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[1][:50], lines[2]]), encoding="utf-8")
    with pytest.raises(BadResults, match=r"a\.jsonl:2"):
        load([path])


def test_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert _report(RESULTS, "--plots", tmp_path / "plots") == 0
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert names == {
        "1-latency-answers.png",
        "1-latency-file-position.png",
        "1-latency-prompt-tokens.png",
        "2-speculation-tokens-per-forward.png",
        "2-speculation-forward.png",
        "2-speculation-prefill.png",
    }
    told = capsys.readouterr().err
    for path in (tmp_path / "plots").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"plot: {path}\n" in told


@pytest.mark.filterwarnings("error")
def test_plots_of_sparse_records(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from bench.report.plots import draw

    runs = [
        run(key(ms=None, outcome="timeout")),
        run(key(source="cache")),
        run(key(), key("peer", ms=None, outcome="error")),
        run(call(forwards=0), call("peer", "plain", forwards=None)),
        run(forward(4, 1.0, linear_ms=None), prefill(8, 0.0)),
    ]
    drawn = [path.name for path in draw(runs, tmp_path)]
    assert drawn == [
        "2-latency-answers.png",
        "3-latency-answers.png",
        "3-latency-file-position.png",
        "5-latency-forward.png",
    ]


def test_without_matplotlib_the_tables_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib") or name == "bench.report.plots":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert _report(RESULTS, "--plots", tmp_path / "plots") == 1
    told = capsys.readouterr()
    assert "## Where Draftline is behind" in told.out
    assert told.err == "draftline bench: plots need matplotlib: pip install matplotlib\n"
