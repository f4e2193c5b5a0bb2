"""The commands as a shell runs them: streams that are closed or full, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.name != "posix", reason="the shell of POSIX systems"),
]

TEXT = "def f():\n    x = 1\n    return x\n"
CHANGED = TEXT.replace("x", "y")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_text(TEXT)
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    said = {"FAKE_ANSWER": CHANGED + "```", "DRAFTLINE_HOME": str(home)}
    return {**os.environ, "PYTHONPATH": str(ROOT), **said, **more}


def shell(words: str, file: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run ``words`` with ``draftline`` and ``$FILE`` in them; stdin is empty."""
    script = f'draftline() {{ "{sys.executable}" {ROOT}/tests/e2e/fake_server.py "$@"; }}; {words}'
    env = environment(file.parent / "home", FILE=str(file), **more)
    return subprocess.run(
        ["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=60
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("draftline edit $FILE <&-", 2, "no instruction"),
        ("draftline edit - x <&-", 1, "empty-selection"),
        ("draftline complete $FILE:2:10 >&-", 0, ""),
        ("draftline edit $FILE x --write >&- <&-", 0, "2 lines added"),
        ("draftline model list >&-", 0, ""),
    ],
)
def test_closed_streams(words: str, status: int, said: str, file: Path) -> None:
    done = shell(words, file, FAKE_ANSWER=CHANGED + "```" if "edit" in words else "2")
    assert done.returncode == status, done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr and done.stdout == ""
    assert file.read_text() == (CHANGED if "--write" in words else TEXT)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", ["edit $FILE x", "complete $FILE:2:10", "model list"])
def test_a_full_disk_behind_stdout(words: str, file: Path) -> None:
    done = shell(f"draftline {words} >/dev/full", file)
    assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr


def test_a_reader_that_has_gone(file: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, str(ROOT / "tests/e2e/fake_server.py"), "edit", str(file), "x"]
    env = environment(file.parent / "home")
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=env, timeout=60)
    os.close(writer)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "Broken" not in done.stderr


@pytest.mark.parametrize("slow", ["FAKE_LOAD_SECONDS", "FAKE_STEP_SECONDS"])
def test_ctrl_c_leaves_the_file_alone(slow: str, file: Path) -> None:
    command = [sys.executable, str(ROOT / "tests/e2e/fake_server.py"), "edit", str(file), "x", "--write"]
    env = environment(file.parent / "home", **{slow: "30"})
    # A shell lets what it runs in the background ignore it.
    process: Any = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while "noise on file descriptor" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "draftline: interrupted" in err and "Traceback" not in err
    assert file.read_text() == TEXT and [path.name for path in file.parent.glob(".*")] == []
