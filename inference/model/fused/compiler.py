"""Compiles the C files of this directory for this processor and keeps the result."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from inference import paths
from inference.diagnosis.machine import processor
from inference.model.fused.library import Library

_HERE = Path(__file__).parent
_SECONDS = 60.0

# Rows of rows.c must round alike in vector code and in scalar rests; see there.
_SOURCES = {
    "rows.c": "-ffp-contract=off",
    "attention.c": "-ffp-contract=fast",
    "product.c": "-ffp-contract=off",
    "forward.c": "-ffp-contract=off",
}
_FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math")


class NoCompiler(Exception):
    """The functions cannot be compiled here; the message says why."""


def load() -> Library:
    """The compiled functions.

    Raises:
        NoCompiler: they cannot be compiled or loaded here.
    """
    try:
        path = compiled()
        _check_owner(path)
    except (OSError, ValueError) as error:  # a home that cannot be read, a CC with an open quote
        raise NoCompiler(f"the functions cannot be compiled: {error}") from error
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        # Cut short by a power failure, perhaps: the next start compiles again.
        with contextlib.suppress(OSError):
            path.unlink()
        raise NoCompiler(f"the compiled functions cannot be loaded: {error}") from error


def compiled() -> Path:
    """The shared library for this processor, compiled if this is the first time (about a second).

    It is kept below Draftline's home under a name made of sources, flags, compiler and processor, so that
    a new version of any of them makes a new file.

    Raises:
        NoCompiler: no C compiler, or it fails.
    """
    if sys.platform == "win32":
        raise NoCompiler("not on Windows yet")
    compiler = _find()
    native = "-mcpu=native" if platform.machine() in ("arm64", "aarch64") else "-march=native"
    key = hashlib.sha256()
    version = _run([*compiler, "--version"])
    for part in (*compiler, *_FLAGS, native, *_SOURCES.values(), version, processor(), features()):
        key.update(part.encode() + b"\0")
    for name in _SOURCES:
        key.update((_HERE / name).read_bytes())
    library = paths.kernels_dir() / f"{key.hexdigest()[:16]}.so"
    if not library.is_file() or stat.S_IMODE(library.stat().st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        # GNU's OpenMP calls are answered by the library that torch has loaded: one pool of threads
        # for both. Other compilers call a library of their own, which would bring a second pool.
        # On macOS torch brings the library that clang's calls need, and symbols are looked up there.
        threads: list[str] = []
        if sys.platform == "linux" and "Free Software Foundation" in version:
            threads = ["-fopenmp"]
        elif sys.platform == "darwin" and "clang" in version:
            threads = ["-Xclang", "-fopenmp"]
        _compile([*compiler, *_FLAGS, native], threads, library)
    return library


def _check_owner(path: Path) -> None:
    """Code is only loaded if nobody else can have written it.

    Raises:
        NoCompiler
    """
    for place in (path, path.parent):
        facts = place.stat()
        if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise NoCompiler(f"{place} belongs to somebody else or can be written by others")


def features() -> str:
    """What tells processors apart that have one name, or none: a library must not meet an older one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return ""
    kept = ("flags", "Features", "CPU implementer", "CPU part", "CPU variant")
    return "\n".join(line for line in lines.splitlines() if line.startswith(kept))


def _find() -> list[str]:
    if sys.platform == "darwin" and "CC" not in os.environ:
        # Without the developer tools cc is there, and opens a window that offers to install them.
        _run(["xcode-select", "-p"])
    command = shlex.split(os.environ.get("CC", ""))
    for candidate in (command, ["cc"], ["gcc"], ["clang"]):
        if candidate and shutil.which(candidate[0]):
            return candidate
    raise NoCompiler("no C compiler (cc, gcc, clang) on PATH")


def _compile(command: list[str], threads: list[str], library: Path) -> None:
    """``threads``: for compiling only; linking with them would name a thread library."""
    try:
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            objects = []
            for name, contract in _SOURCES.items():
                objects.append(str(Path(scratch) / f"{name}.o"))
                _run([*command, *threads, contract, "-c", str(_HERE / name), "-o", objects[-1]])
            built = Path(scratch) / "built.so"
            lookup = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
            _run([*command, "-shared", *lookup, *objects, "-o", str(built), "-lm"])
            os.chmod(built, 0o700)  # whatever the user's mask is, see _check_owner
            os.replace(built, library)  # whole or not at all, also when two processes compile
    except OSError as error:
        raise NoCompiler(f"the result cannot be stored: {error}") from error


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,  # the server's own is the client's
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCompiler(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise NoCompiler(f"{command[0]} failed: {lines[0]}")
    return done.stdout
