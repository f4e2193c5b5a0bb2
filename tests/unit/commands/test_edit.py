"""``draftline edit`` with an engine that says what it is told to."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from inference.api import EngineConfig
from lsp_server.cli import main
from lsp_server.commands import complete, edit
from lsp_server.commands.edit import Target, parse_target
from lsp_server.commands.switches import WrongUsage
from tests.fake_engine import FakeEngine

TEXT = "def f():\r\n    x = 1\r\n    return x\r\n"
ANSWER = "def f():\n    y = 1\n    return y\n```\nDone."
CHANGED = TEXT.replace("x", "y")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what the engine says."""

    def use(answer: str) -> None:
        def load(config: EngineConfig, on_status: Any) -> FakeEngine:
            return FakeEngine(config, on_status, answer=answer)

        monkeypatch.setattr(complete, "load_engine", load)

    use(ANSWER)
    return use


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_bytes(TEXT.encode())
    return path


def test_prints_the_file_as_it_would_be(answers: Any, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["edit", f"{file}:1-3", "Rename x to y."]) == 0
    assert capfd.readouterr().out == CHANGED
    assert file.read_bytes() == TEXT.encode()


def test_write_keeps_mode_and_byte_order_mark(answers: Any, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    file.chmod(0o754)
    assert main(["edit", str(file), "Rename x to y.", "--write"]) == 0
    assert file.read_bytes() == b"\xef\xbb\xbf" + CHANGED.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o754
    assert list(file.parent.iterdir()) == [file]


def test_diff_and_json(
    answers: Any, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert main(["edit", str(file), "Rename.", "--diff"]) == 0
    out = capfd.readouterr().out.replace("\r\n", "\n")
    assert f"+++ b/{file.name}\n" in out and "-    x = 1\n" in out and "+    y = 1\n" in out
    assert main(["edit", str(file), "Rename.", "--json"]) == 0
    figures = json.loads(capfd.readouterr().out)
    assert figures["text"] == CHANGED and figures["flags"] == [] and figures["summary"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n"])
def test_a_diff_can_be_applied(end: str, last: str) -> None:
    old = "a\n\fb\nc" + last
    new = old.replace("c", "d")
    old, new = old.replace("\n", end), new.replace("\n", end)
    lines = edit._diff("f", old, new)
    minus = "".join(line[1:] for line in lines[3:] if line[0] in " -")
    plus = "".join(line[1:] for line in lines[3:] if line[0] in " +")
    missing = "\n\\ No newline at end of file\n"
    assert (minus.replace(missing, ""), plus.replace(missing, "")) == (old, new)
    assert (missing in "".join(lines)) == (last == "")
    counts = (len(old.split("\n")) - (last != ""), len(new.split("\n")) - (last != ""))
    assert lines[2] == f"@@ -1,{counts[0]} +1,{counts[1]} @@\n"


def test_a_byte_order_mark_is_part_of_what_is_printed(
    answers: Any, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert main(["edit", str(file), "Rename."]) == 0
    assert capfd.readouterr().out == "\ufeff" + CHANGED
    assert main(["edit", str(file), "Rename.", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["text"] == "\ufeff" + CHANGED
    assert main(["edit", str(file), "Rename.", "--diff"]) == 0
    # Else `git apply` finds no such line.
    assert "\n \ufeffdef f():\r\n" in capfd.readouterr().out


def test_names_in_a_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert edit._diff(str(tmp_path / "d" / "f.py"), "a\n", "b\n")[:2] == ["--- a/d/f.py\n", "+++ b/d/f.py\n"]
    assert edit._diff("./f.py", "a\n", "b\n")[0] == "--- a/f.py\n"
    assert edit._diff("my file.py", "a\n", "b\n")[0] == "--- a/my file.py\t\n"


def test_lines_of_a_file_whose_name_ends_like_a_place(answers: Any, file: Path) -> None:
    odd = file.with_name("code:12")
    odd.write_bytes(TEXT.encode())
    assert main(["edit", str(odd), "Rename.", "--lines", "1-3", "--write"]) == 0
    assert odd.read_bytes() == CHANGED.encode() and file.read_bytes() == TEXT.encode()


def test_switches_between_path_and_instruction(answers: Any, file: Path) -> None:
    assert main(["edit", str(file), "--lines", "1-3", "--write", "Rename x to y."]) == 0
    assert file.read_bytes() == CHANGED.encode()
    assert main(["edit", str(file), "--write", "Rename.", "one too many"]) == 2


def test_a_file_that_cannot_be_written(
    answers: Any, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(edit.os, "replace", refuse)
    assert main(["edit", str(file), "Rename x to y.", "--write"]) == 1
    assert "(read-only)" in capfd.readouterr().err
    assert file.read_bytes() == TEXT.encode() and list(file.parent.iterdir()) == [file]


def test_stdin_for_the_text_or_the_instruction(
    answers: Any, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert main(["edit", "-", "Rename.", "--lines", "1-3"]) == 0
    assert capfd.readouterr().out == CHANGED
    # Not what the locale may call text.
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"na\xefve\n"), encoding="utf-8"))
    assert main(["edit", str(file)]) == 0
    assert capfd.readouterr().out == CHANGED
    assert main(["edit", "-"]) == 2
    assert main(["edit", "-", "Rename.", "--write"]) == 2


def test_doubtful_answers_need_force(answers: Any, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answers("def f():\n    y = (\n    return y\n```")
    assert main(["edit", str(file), "Rename.", "--write"]) == 1
    assert "no longer parse" in capfd.readouterr().err
    assert file.read_bytes() == TEXT.encode()
    assert main(["edit", str(file), "Rename.", "--write", "--force"]) == 0
    assert b"y = (" in file.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["{file}:9-12", "x"], 2, "lines must be from 1 to 3"),
        (["{file}:3-1", "x"], 2, "END not before it"),
        (["{file}", " "], 2, "no instruction"),
        (["{file}:0-2", "x"], 2, "START must be 1 or more"),
        (["{file}:1-", "x"], 2, "expected PATH:START-END"),
        (["{file}:2:3", "x"], 2, "expected PATH:START-END"),
        (["{file}", "x", "--lines", "all"], 2, "expected --lines START-END"),
        (["{file}:1-2", "x", "--lines", "3"], 2, "both name lines"),
        (["nowhere.py", "x"], 1, "does not exist"),
        (["a" * 300, "x", "--write"], 1, "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_before_a_model_is_loaded(
    arguments: list[str],
    status: int,
    words: str,
    file: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(*_: object) -> Any:
        pytest.fail("the model was loaded")

    monkeypatch.setattr(complete, "load_engine", load)
    assert main(["edit", *(argument.format(file=file) for argument in arguments)]) == status
    assert words in capfd.readouterr().err


def test_no_edit_says_why(answers: Any, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answers(TEXT.replace("\r", "") + "```")
    assert main(["edit", str(file), "Change nothing."]) == 1
    assert "no edit (unchanged)" in capfd.readouterr().err


KEY = "AKIA" + "IOSFODNN7QRSTUVW"


@pytest.mark.parametrize("switch", ["", "--diff", "--json", "--write"])
def test_secrets_elsewhere_in_the_file_stay_what_they_are(
    switch: str, answers: Any, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = f'KEY = "{KEY}"\r\n{TEXT}TOKEN = "{KEY}"\r\n'
    file.write_bytes(text.encode())
    assert main(["edit", f"{file}:2-4", "Rename x to y.", *filter(None, [switch])]) == 0
    changed = text.replace("x = 1", "y = 1").replace("return x", "return y")
    out = capfd.readouterr().out
    if switch == "--write":
        assert file.read_bytes() == changed.encode()
    elif switch == "--diff":
        assert f'+KEY = "{KEY}"' not in out and f' KEY = "{KEY}"' in out and "xxxx" not in out
    else:
        assert (json.loads(out)["text"] if switch == "--json" else out) == changed


def test_a_line_with_a_secret_is_not_changed(
    answers: Any, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = f'def f():\n    key = "{KEY}"\n    return key\n'
    file.write_text(text)
    answers(text.replace(KEY, "x" * 20).replace("key", "token") + "```")
    assert main(["edit", str(file), "Rename key to token.", "--write", "--force"]) == 1
    assert "no edit (secret)" in capfd.readouterr().err
    assert file.read_text() == text


def test_a_file_that_changed_meanwhile_is_left_alone(
    answers: Any, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = edit._ask

    def slowly(*arguments: Any) -> Any:
        file.write_bytes(b"changed")
        return ask(*arguments)

    monkeypatch.setattr(edit, "_ask", slowly)
    assert main(["edit", str(file), "Rename x to y.", "--write"]) == 1
    assert "no edit (stale)" in capfd.readouterr().err
    assert file.read_bytes() == b"changed"


def test_a_private_key_on_stdin_is_refused(
    answers: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "MIIEpAIBAAKCAQEA7Zx9" + "abcDEF0123456789" * 3
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["edit", "-", "Rename."]) == 1
    assert "no edit (excluded)" in capfd.readouterr().err


def test_targets() -> None:
    assert parse_target("a.py") == Target("a.py", None, None)
    assert parse_target("a.py:3") == Target("a.py", 3, 3)
    assert parse_target("C:/a.py:3-5") == Target("C:/a.py", 3, 5)
    assert edit.parse_target("-:1-2") == Target("-", 1, 2)
    with pytest.raises(WrongUsage):
        parse_target("a.py:0-3")
