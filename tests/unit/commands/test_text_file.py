"""Files written anew without losing what is not their text."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from lsp_server.commands import text_file
from lsp_server.commands.text_file import CannotRead, TextFile, read_text_file, replace_text_file

OLD, NEW = b"old text\n", b"another text, which is longer\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


@pytest.fixture
def no_new_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a directory that the user may not write to."""

    def refuse(**_: object) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(text_file.tempfile, "mkstemp", refuse)


def test_a_plain_file_is_exchanged(file: Path) -> None:
    before = file.stat().st_ino
    replace_text_file(file, NEW)
    assert file.read_bytes() == NEW and file.stat().st_ino != before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]


def test_all_names_of_a_file_keep_its_text(file: Path) -> None:
    hard, soft = file.with_name("hard.py"), file.with_name("soft.py")
    os.link(file, hard)
    soft.symlink_to(file.name)
    replace_text_file(soft, NEW)
    assert [path.read_bytes() for path in (file, hard, soft)] == [NEW] * 3 and soft.is_symlink()


@pytest.mark.parametrize("text", [NEW, b"short"])
def test_a_directory_that_takes_no_new_file(file: Path, no_new_files: None, text: bytes) -> None:
    replace_text_file(file, text)
    assert file.read_bytes() == text and stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives a file away")
def test_the_owner_stays(file: Path) -> None:
    os.chown(file, 12345, 23456)
    replace_text_file(file, NEW)
    assert file.read_bytes() == NEW
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)
    assert list(file.parent.iterdir()) == [file]


def test_attributes_stay(file: Path) -> None:
    try:
        os.setxattr(file, "user.note", b"mine")
    except (AttributeError, OSError):
        pytest.skip("this file system has no attributes")
    replace_text_file(file, NEW)
    assert file.read_bytes() == NEW and os.getxattr(file, "user.note") == b"mine"


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_file_that_cannot_be_written_whole_gets_its_text_back(
    file: Path, no_new_files: None, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    write, calls = os.write, 0

    def full(descriptor: int, data: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise stop
        return write(descriptor, data[:5] if calls == 1 else data)

    monkeypatch.setattr(text_file.os, "write", full)
    with pytest.raises(type(stop)):
        replace_text_file(file, NEW)
    assert calls == 3 and file.read_bytes() == OLD


def test_what_was_read_is_what_the_file_held(file: Path) -> None:
    for data in (b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbfx\r\ny\r", "é\u2028\n".encode()):
        file.write_bytes(data)
        assert read_text_file(file).data == data
    assert TextFile.of(b"\xef\xbb\xbfx") == TextFile("\ufeff", "x")


def test_a_file_of_gigabytes_is_not_read(file: Path) -> None:
    os.truncate(file, 5 << 30)
    with pytest.raises(CannotRead) as refusal:
        read_text_file(file)
    assert refusal.value.code == "too-large"
