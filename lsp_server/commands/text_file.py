"""A text file that a user names: read as far as it may be, and written without losing anything of it."""

from __future__ import annotations

import codecs
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from inference.errors import DraftlineError
from lsp_server.context.exclusions import Exclusions, workspace_root
from lsp_server.context.secrets import has_private_key
from lsp_server.documents.languages import language_of
from lsp_server.documents.store import MAX_CHARS
from lsp_server.documents.text import Snapshot


class CannotRead(DraftlineError):
    """The file cannot be read or must not be; ``code`` is a reason of no suggestion where there is one."""

    code = "cannot-read"

    def __init__(self, message: str, next_step: str = "", code: str = "") -> None:
        super().__init__(message, next_step)
        self.code = code or self.code


@dataclass(frozen=True)
class TextFile:
    """What a file holds.

    Attributes:
        mark: the byte order mark, "" if it has none.
        text: what follows it.
    """

    mark: str
    text: str

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return (self.mark + self.text).encode("utf-8")

    @classmethod
    def of(cls, data: bytes) -> TextFile:
        """Of the bytes of a file.

        Raises:
            UnicodeDecodeError
        """
        mark = "\ufeff" if data.startswith(codecs.BOM_UTF8) else ""
        return cls(mark, data.decode("utf-8-sig"))


def read_text_file(path: Path) -> TextFile:
    """The text of a file.

    Raises:
        CannotRead: missing, unreadable, excluded, too large, binary or not UTF-8.
    """
    try:
        data = _allowed_bytes(path)
    except FileNotFoundError:
        raise CannotRead(f"{path} does not exist.", "Check the path.") from None
    except IsADirectoryError:
        raise CannotRead(f"{path} is a directory.", "Name a file in it.") from None
    except OSError as error:
        raise CannotRead(f"{path} cannot be read: {error.strerror}.") from None
    if b"\0" in data:
        raise CannotRead(f"{path} is a binary file.", "Name a text file in UTF-8.")
    try:
        file = TextFile.of(data)
    except UnicodeDecodeError as error:
        raise CannotRead(
            f"{path} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}.",
            "Convert the file to UTF-8 first.",
        ) from None
    if has_private_key(file.text.splitlines()):
        words = f"{path} is excluded: it holds a private key."
        raise CannotRead(words, "Excluded files are never read.", "excluded")
    return file


def snapshot_of(path: Path, text: str) -> Snapshot:
    """The snapshot of a file's text: as the model may see it, secrets are replaced."""
    return Snapshot.of(text, uri=path.resolve().as_uri(), language_id=language_of(path))


def replace_text_file(path: Path, data: bytes) -> None:
    """Write a file anew, so that it never holds half of the old text and half of the new.

    A new file takes the place of the old one where nothing but the text would change by that. Where other
    names, another owner or attributes would be lost, or the directory takes no new file, the old one is
    written over, and gets its text back if that fails.

    Raises:
        OSError: it is as it was.
    """
    real = Path(os.path.realpath(path))
    if not _exchanged(real, data):
        _write_over(real, data)


def _allowed_bytes(path: Path) -> bytes:
    exclusions = Exclusions()
    exclusions.set_roots([workspace_root(path)])
    if exclusions.excludes(path):
        raise CannotRead(
            f"{path} is excluded: it may hold secrets, or a .draftlineignore names it.",
            "Excluded files are never read.",
            "excluded",
        )
    if path.exists() and not path.is_file() and not path.is_dir():
        # Reading a pipe or a device could wait for ever.
        raise CannotRead(f"{path} is not a regular file.", "Name a file.")
    if path.is_file() and path.stat().st_size > MAX_CHARS:
        words = f"{path} has more than {MAX_CHARS >> 20} MiB."
        raise CannotRead(words, "Draftline is for source code; cut it into smaller files.", "too-large")
    return path.read_bytes()


def _exchanged(real: Path, data: bytes) -> bool:
    old = real.stat()
    if old.st_nlink > 1 or _has_attributes(real):
        return False
    try:
        handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name[:64]}.")
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            new = os.fstat(file.fileno())
            same_owner = (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid)
            if same_owner:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # else a crash of the machine may leave an empty file
        if same_owner:
            os.chmod(name, old.st_mode & 0o7777)
            os.replace(name, real)
        return same_owner
    finally:
        Path(name).unlink(missing_ok=True)


def _has_attributes(real: Path) -> bool:
    """Extended attributes, which access control lists are too; the label that SELinux gives every file is
    none that would be missed."""
    if not hasattr(os, "listxattr"):
        return False
    try:
        return any(name != "security.selinux" for name in os.listxattr(real))
    except OSError:
        return False


def _write_over(real: Path, data: bytes) -> None:
    with open(real, "r+b", buffering=0) as file:
        old = file.readall()
        try:
            _fill(file.fileno(), data)
        except BaseException:
            _fill(file.fileno(), old)
            raise


def _fill(descriptor: int, data: bytes) -> None:
    """Longer text first, so that a full disk is met before anything is cut off."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    os.ftruncate(descriptor, len(data))
