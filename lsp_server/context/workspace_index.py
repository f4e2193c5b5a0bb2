"""Definitions in the files of one workspace folder, read in the background.

Bounded in files, bytes and time: a slice of work, then a longer rest; none at all while somebody waits for
a completion. Files that the exclusions name are never opened.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from lsp_server.context.names import language_group
from lsp_server.context.secrets import has_private_key
from lsp_server.context.tag_queries import QUERIES
from lsp_server.context.tags import Tag, tags_of
from lsp_server.documents.languages import language_of
from lsp_server.documents.text import Snapshot

MAX_FILES = 2000
MAX_BYTES = 16 * 2**20
# Larger files are mostly generated; parsing one holds up everything else for that long.
MAX_FILE_BYTES = 128 * 1024
# Names of folders and files looked at, whatever they are.
MAX_SEEN = 50_000
SKIPPED_DIRECTORIES = frozenset(
    {"node_modules", "site-packages", "__pycache__", "build", "dist", "out", "target", "vendor", "venv"}
)
_log = logging.getLogger(__name__)

_SLICE_S, _REST_S = 0.01, 0.05
_BUSY_S = 0.2
_NICE = 10


class WorkspaceIndex:
    """Definitions by name. Lookups are safe from any thread."""

    def __init__(
        self,
        root: Path,
        excluded: Callable[[Path], bool],
        busy: Callable[[], bool] = lambda: False,
        *,
        max_files: int = MAX_FILES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """``excluded`` is asked before a file is opened, ``busy`` before each slice of work; both in the
        background thread."""
        self.root = root
        self._excluded, self._busy = excluded, busy
        self._max_files, self._max_bytes = max_files, max_bytes
        self._lock = threading.Lock()
        self._tags: dict[Path, tuple[int, tuple[Tag, ...]]] = {}
        self._names: dict[str, set[Path]] = {}
        self._bytes = 0
        self._again: deque[Path] = deque()
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to read in the background; once."""
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="draftline-index", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the background thread after the file it is at, and forget everything."""
        self._closed = True
        self._wake.set()
        with self._lock:
            self._tags.clear()
            self._names.clear()

    def changed(self, path: Path) -> None:
        """A file was written: read it again, soon."""
        if path.is_relative_to(self.root):
            self._again.append(path)
            self._wake.set()

    def build(self) -> None:
        """Read everything now, in this thread."""
        for _ in self._work():
            pass

    def lookup(self, name: str, language_id: str) -> list[tuple[Path, Tag]]:
        """Definitions of a name in languages that can use each other's, in the order of their paths."""
        group = language_group(language_id)
        with self._lock:
            paths = sorted(self._names.get(name, ()))
            return [
                (path, tag)
                for path in paths
                if language_group(language_of(path)) == group
                for tag in self._tags[path][1]
                if tag.name == name
            ]

    def members(self, path: Path, container: str) -> list[Tag]:
        """Definitions in a file that belong to a class of that name."""
        with self._lock:
            known = self._tags.get(path)
            return [tag for tag in known[1] if tag.container_name == container] if known else []

    def __len__(self) -> int:
        return len(self._tags)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that were read."""
        return self._bytes

    def _run(self) -> None:
        if hasattr(os, "setpriority"):
            with contextlib.suppress(OSError):
                # On Linux this is the thread's own; elsewhere it may be refused or mean the process.
                if os.uname().sysname == "Linux":
                    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        work: Iterator[None] | None = self._work()
        while not self._closed:
            while self._busy() and not self._closed:
                time.sleep(_BUSY_S)
            until = time.monotonic() + _SLICE_S
            while work is not None and time.monotonic() < until and not self._closed:
                work = work if next(work, self) is None else None
            if work is None:
                self._wake.wait()
                self._wake.clear()
                work = self._reread()
            else:
                time.sleep(_REST_S)

    def _work(self) -> Iterator[None]:
        """Reads all files, one at each step."""
        for path in self._files():
            if len(self._tags) >= self._max_files or self._bytes >= self._max_bytes:
                return
            self._try_to_read(path)
            yield
        yield from self._reread()

    def _reread(self) -> Iterator[None]:
        while self._again:
            self._try_to_read(self._again.popleft())
            yield

    def _files(self) -> Iterator[Path]:
        """Source files below the root, folder by folder, so that what lies near the top comes first."""
        folders = deque([self.root])
        seen = 0
        while folders:
            try:
                with os.scandir(folders.popleft()) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in found:
                seen += 1
                if seen > MAX_SEEN:
                    return
                # A link may lead out of the workspace, or in a circle.
                try:
                    is_folder, is_file = (
                        entry.is_dir(follow_symlinks=False),
                        entry.is_file(follow_symlinks=False),
                    )
                except OSError:
                    continue
                if is_folder:
                    if entry.name not in SKIPPED_DIRECTORIES and not entry.name.startswith("."):
                        folders.append(Path(entry.path))
                elif is_file:
                    path = Path(entry.path)
                    if language_of(path) in QUERIES:
                        yield path

    def _try_to_read(self, path: Path) -> None:
        """One odd file must not end the index of all others."""
        try:
            self._read(path)
        except Exception:
            _log.exception("definitions of a file are left out")

    def _read(self, path: Path) -> None:
        self._forget(path)
        language = language_of(path)
        if language not in QUERIES or path.is_symlink() or self._excluded(path):
            return
        try:
            size = path.stat().st_size
            if not 0 < size <= MAX_FILE_BYTES or self._bytes + size > self._max_bytes:
                return
            if len(self._tags) >= self._max_files:
                return
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return
        if has_private_key(text.splitlines()):
            return
        # A snapshot holds no secrets.
        snapshot = Snapshot.of(text, language_id=language)
        tags = tags_of(snapshot.lf(0, len(snapshot.lines)), language)
        with self._lock:
            if self._closed:
                return
            self._tags[path] = (size, tags)
            self._bytes += size
            for tag in tags:
                self._names.setdefault(tag.name, set()).add(path)

    def _forget(self, path: Path) -> None:
        with self._lock:
            size, tags = self._tags.pop(path, (0, ()))
            self._bytes -= size
            for tag in tags:
                paths = self._names.get(tag.name)
                if paths is not None:
                    paths.discard(path)
                    if not paths:
                        del self._names[tag.name]
