"""Pinned real source code to type again: published packages, fetched as data.

A package is downloaded as its archive, compared with a checksum, and its source files are copied out.
Nothing of it is installed, built, imported or run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from bench.places import SUFFIXES
from inference import paths
from inference.errors import ChecksumMismatch, CorruptFile, DraftlineError
from inference.weights.disk import disk_full_explained, not_writable_explained, sync_directory, sync_file
from inference.weights.lock import exclusive
from inference.weights.pip_command import pip_command, pip_environment
from inference.weights.progress import Progress
from inference.weights.unavailable import SourceUnavailable
from inference.weights.verify import sha256_of

# Far above every pinned corpus: an archive beyond them is not what was pinned.
MAX_FILE_BYTES = 4 * 2**20
MAX_FILES = 4000
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError)
_SECONDS = 300  # for one download
_OTHER_CODE = "measure your own code instead: --repo PATH"


class UnknownCorpus(DraftlineError):
    """No corpus has this name."""

    code = "unknown-corpus"


class CorpusUnavailable(DraftlineError):
    """A corpus is not on this disk and cannot be downloaded."""

    code = "corpus-unavailable"


@dataclass(frozen=True)
class Corpus:
    """One version of one package.

    Attributes:
        kind: "wheel" (downloaded by pip) or "npm" (a tarball, downloaded by npm).
        language: of its files, an LSP language identifier.
        sha256: of the archive, lower-case hex; filename: of the archive.
        kept: what to take of it: folders (with a ``/`` at the end) and files of the archive.
    """

    name: str
    version: str
    kind: Literal["wheel", "npm"]
    language: str
    sha256: str
    filename: str
    kept: tuple[str, ...]

    @property
    def directory(self) -> Path:
        """Where its files are once they were fetched."""
        return _home() / f"{self.name}-{self.version}"


def _wheel(name: str, version: str, sha256: str, language: str = "python", kept: str = "") -> Corpus:
    filename = f"{name}-{version}-py3-none-any.whl"
    return Corpus(name, version, "wheel", language, sha256, filename, (kept or f"{name}/",))


def _npm(name: str, version: str, sha256: str, language: str, *kept: str) -> Corpus:
    return Corpus(name, version, "npm", language, sha256, f"{name}-{version}.tgz", kept)


CORPORA: dict[str, Corpus] = {
    corpus.name: corpus
    for corpus in (
        _wheel("click", "8.5.1", "8bb5376d2006950386f8c6427613334a2acadc5f559cb80e638d00b4df957e37"),
        _wheel("requests", "2.34.2", "2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0"),
        _wheel("rich", "15.0.0", "33bd4ef74232fb73fe9279a257718407f169c09b78a87ad3d296f548e27de0bb"),
        _wheel("flask", "3.1.3", "f4bcbefc124291925f1a26446da31a5178f9483862233b23c0c96a20701f670c"),
        _wheel("httpx", "0.28.1", "d909fcccc110f8c7faf814ca82a9a4d816bc5a6dbfea25d6591d6985b8ba59ad"),
        _wheel(
            "pybind11",
            "3.0.1",
            "aa8f0aa6e0a94d3b64adfc38f560f33f15e589be2175e103c0a33c6bce55ee89",
            language="cpp",
            kept="pybind11/include/",
        ),
        _npm(
            "rxjs",
            "7.8.2",
            "2312f8ffd9726ffd7bd53ea12c5f13663d09a3dc3326f448c70b88f5ef6fac82",
            "typescript",
            "package/src/",
        ),
        _npm(
            "fastify",
            "5.6.1",
            "51d4b0dbe007229304d036d47c33603d26de58abbabc1ffde9b2f6b0c882d3a8",
            "javascript",
            "package/lib/",
            "package/fastify.js",
        ),
    )
}


def fetch(name: str, progress: Progress) -> Path:
    """The folder with a corpus's source files; downloads them if they are not on this disk.

    The files lie as in the archive, without its one outermost folder. Safe to interrupt at any moment
    and to run from several processes: one downloads, the others wait for it.

    Raises:
        UnknownCorpus
        CorpusUnavailable: no pip or npm, or it could not download the archive.
        ChecksumMismatch: other bytes came than the pinned ones; they were not opened.
        CorruptFile: the archive cannot be read, or has members that no source package has.
        HomeNotWritable, DiskFull
    """
    corpus = CORPORA.get(name)
    if corpus is None:
        raise UnknownCorpus(
            f"There is no corpus {name!r}.", f"Choose one of {', '.join(CORPORA)}, or {_OTHER_CODE}."
        )
    if corpus.directory.is_dir():
        return corpus.directory
    with exclusive(f"corpus-{name}", f"downloading the corpus {name}", progress):
        if not corpus.directory.is_dir():
            with disk_full_explained(_home(), f"downloading the corpus {name}"):
                _fetch(corpus, progress)
    return corpus.directory


def _home() -> Path:
    return paths.home() / "corpora"


def _fetch(corpus: Corpus, progress: Progress) -> None:
    with _scratch(corpus) as scratch:
        progress.begin(f"downloading {corpus.name} {corpus.version}", None)
        try:
            archive = _download(corpus, scratch)
        finally:
            progress.end()
        found = sha256_of(archive, progress)
        if found != corpus.sha256:
            raise ChecksumMismatch(
                f"{corpus.filename} arrived with the checksum {found[:16]}..., not {corpus.sha256[:16]}...;"
                " it was not opened.",
                f"Check which package index or proxy this machine uses, or {_OTHER_CODE}.",
            )
        sources = scratch / "sources"
        _extract(corpus, archive, sources)
        os.replace(sources, corpus.directory)
        sync_directory(_home())


@contextlib.contextmanager
def _scratch(corpus: Corpus) -> Iterator[Path]:
    prefix = f".{corpus.name}-"
    with not_writable_explained():
        _home().mkdir(parents=True, exist_ok=True)
        for leftover in _home().glob(f"{prefix}*"):  # of a killed process; the lock is ours
            shutil.rmtree(leftover, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=_home()))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _download(corpus: Corpus, scratch: Path) -> Path:
    command = _pip(corpus, scratch) if corpus.kind == "wheel" else _npm_pack(corpus, scratch)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=pip_environment(scratch),
            cwd=scratch,
            timeout=_SECONDS,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise _unavailable(corpus, f"no end after {_SECONDS} seconds") from None
    archive = scratch / corpus.filename
    if done.returncode != 0 or not archive.is_file():
        raise _unavailable(corpus, _reason(done.stdout))
    return archive


def _pip(corpus: Corpus, scratch: Path) -> list[str]:
    try:
        pip = pip_command()
    except SourceUnavailable as unavailable:
        raise _unavailable(corpus, unavailable.reason) from unavailable
    return [
        *pip,
        "download",
        "--no-deps",
        "--only-binary=:all:",
        # Nothing is run, so it does not matter which Python the package is for.
        "--ignore-requires-python",
        "--disable-pip-version-check",
        "--no-input",
        "--progress-bar=off",
        "--retries=2",
        "--timeout=15",
        f"--dest={scratch}",
        f"{corpus.name}=={corpus.version}",
    ]


def _npm_pack(corpus: Corpus, scratch: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise _unavailable(corpus, "it is downloaded by npm, which was not found; install Node.js")
    return [
        npm,
        "pack",
        f"{corpus.name}@{corpus.version}",
        "--ignore-scripts",
        "--no-update-notifier",
        "--loglevel=error",
        "--fetch-retries=2",
        f"--pack-destination={scratch}",
    ]


def _unavailable(corpus: Corpus, reason: str) -> CorpusUnavailable:
    tool = "pip" if corpus.kind == "wheel" else "npm"
    return CorpusUnavailable(
        f"The corpus {corpus.name} {corpus.version} could not be downloaded: {reason}.",
        f"Check the network, the proxy and {tool}'s settings and try again, or {_OTHER_CODE}.",
    )


def _reason(output: str) -> str:
    """The last error line of pip or npm."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error:", "npm error"))]
    # npm ends with where its log is, which says nothing about the cause.
    telling = [line for line in errors if "complete log" not in line and "_logs" not in line]
    return (telling or lines or ["no message"])[-1].rstrip(".")[:200]


def _extract(corpus: Corpus, archive: Path, target: Path) -> None:
    count = 0
    target.mkdir()
    try:
        for member, file in _members(corpus, archive):
            count += 1
            data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES or count > MAX_FILES:
                raise CorruptFile(f"{corpus.filename} is larger than a source package: {member}.")
            path = target.joinpath(*member.parts[1:])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            sync_file(path)
    except _DAMAGED as error:
        raise CorruptFile(f"{corpus.filename} cannot be read: {error}.") from error
    if count == 0:
        raise CorruptFile(f"{corpus.filename} has no source files in {', '.join(corpus.kept)}.")


def _members(corpus: Corpus, archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """The source files to keep. Every member is looked at first: one bad name condemns the archive."""
    if corpus.kind == "wheel":
        with zipfile.ZipFile(archive) as wheel:
            infos = wheel.infolist()
            for info in infos:
                _check(corpus, info.filename, stat.S_ISLNK(info.external_attr >> 16))
            for info in infos:
                if _keeps(corpus, info.filename):
                    with wheel.open(info) as file:
                        yield PurePosixPath(info.filename), file
    else:
        with tarfile.open(archive, "r:gz") as tarball:
            entries = tarball.getmembers()
            for entry in entries:
                _check(corpus, entry.name, not (entry.isfile() or entry.isdir()))
            for entry in entries:
                if entry.isfile() and _keeps(corpus, entry.name):
                    content = tarball.extractfile(entry)
                    assert content is not None  # it is for regular files
                    with content:
                        yield PurePosixPath(entry.name), content


def _check(corpus: Corpus, name: str, special: bool) -> None:
    # Backslashes and colons lead out of the folder on Windows.
    if special or name.startswith("/") or ".." in name.split("/") or "\\" in name or ":" in name:
        raise CorruptFile(f"{corpus.filename} has a member that no source package needs: {name!r}.")


def _keeps(corpus: Corpus, name: str) -> bool:
    wanted = any(name.startswith(kept) if kept.endswith("/") else name == kept for kept in corpus.kept)
    return wanted and PurePosixPath(name).suffix in SUFFIXES
