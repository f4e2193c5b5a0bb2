"""Corpora are pinned bytes, opened carefully, and on the disk completely or not at all."""

from __future__ import annotations

import hashlib
import io
import stat
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from bench import corpora
from bench.corpora import CORPORA, Corpus, CorpusUnavailable, UnknownCorpus, fetch
from inference.errors import ChecksumMismatch, CorruptFile, HomeNotWritable
from inference.weights.progress import NoProgress
from inference.weights.unavailable import SourceUnavailable

FAKE_PIP = Path(__file__).parents[1] / "weights" / "fake_pip.py"
BOOBY_TRAP = "raise SystemExit('never run me')\n"

FAKE_NPM = """#!{python}
import os, pathlib, shutil, sys
arguments = sys.argv[1:]
assert arguments[0] == "pack" and "--ignore-scripts" in arguments, arguments
(destination,) = (a.removeprefix("--pack-destination=") for a in arguments if a.startswith("--pack"))
with open(os.environ["FAKE_PIP_LOG"], "a") as log:
    log.write(arguments[1] + "\\n")
tarball = pathlib.Path(os.environ["FAKE_WHEELS"]) / (arguments[1].replace("@", "-") + ".tgz")
if not tarball.is_file():
    print("npm error code E404\\nnpm error 404 Not Found: " + arguments[1])
    print("npm error A complete log of this run can be found in: /home/me/_logs/1.log")
    sys.exit(1)
shutil.copy(tarball, destination)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DRAFTLINE_HOME, and a pip and an npm that copy from ``tmp_path/index``."""
    directory = tmp_path / "home"
    (tmp_path / "index").mkdir()
    npm = tmp_path / "npm"
    npm.write_text(FAKE_NPM.format(python=sys.executable))
    npm.chmod(0o755)
    monkeypatch.setenv("DRAFTLINE_HOME", str(directory))
    monkeypatch.setenv("FAKE_WHEELS", str(tmp_path / "index"))
    monkeypatch.setenv("FAKE_PIP_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(corpora, "pip_command", lambda: [sys.executable, str(FAKE_PIP)])
    monkeypatch.setattr(corpora.shutil, "which", lambda name: str(npm))
    return directory


class Index:
    """Publishes archives and pins them."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        self._monkeypatch = monkeypatch

    def put(self, corpus: Corpus, data: bytes, sha256: str | None = None) -> None:
        (self._directory / corpus.filename).write_bytes(data)
        pinned = {**vars(corpus), "sha256": sha256 or hashlib.sha256(data).hexdigest()}
        self._monkeypatch.setitem(CORPORA, corpus.name, Corpus(**pinned))

    def wheel(self, members: dict[str | zipfile.ZipInfo, str]) -> None:
        """A wheel named tiny that keeps ``tiny/``."""
        self.put(TINY_WHEEL, _zip(members))

    def tarball(self, *members: tarfile.TarInfo | tuple[str, str]) -> None:
        """An npm package named mini that keeps ``package/lib/`` and ``package/main.js``."""
        self.put(MINI_NPM, _tgz(*members))


TINY_WHEEL = Corpus("tiny", "1.0", "wheel", "python", "", "tiny-1.0-py3-none-any.whl", ("tiny/",))
MINI_NPM = Corpus("mini", "2.0", "npm", "javascript", "", "mini-2.0.tgz", ("package/lib/", "package/main.js"))


def _zip(members: dict[str | zipfile.ZipInfo, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return buffer.getvalue()


def _tgz(*members: tarfile.TarInfo | tuple[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1].encode())
                archive.addfile(info, io.BytesIO(member[1].encode()))
    return buffer.getvalue()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(tmp_path / "index", monkeypatch)


def _tree(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _left(home: Path) -> list[str]:
    return [path.name for path in (home / "corpora").iterdir()] if (home / "corpora").exists() else []


def test_pinned_corpora_are_complete() -> None:
    assert set(CORPORA) == {"click", "requests", "rich", "flask", "httpx", "pybind11", "rxjs", "fastify"}
    for name, corpus in CORPORA.items():
        assert name == corpus.name and corpus.filename.startswith(f"{name}-{corpus.version}")
        assert len(corpus.sha256) == 64 and set(corpus.sha256) <= set("0123456789abcdef")
        assert corpus.filename.endswith({"wheel": ".whl", "npm": ".tgz"}[corpus.kind])


def test_a_wheel_gives_the_sources_of_its_package(index: Index, home: Path, tmp_path: Path) -> None:
    index.wheel(
        {
            "tiny/__init__.py": BOOBY_TRAP,
            "tiny/deep/er/cast.h": "int x;\n",
            "tiny/data.bin": "0",
            "tiny/LICENSE": "free",
            "other/__init__.py": BOOBY_TRAP,
            "tiny-1.0.dist-info/METADATA": "Name: tiny\n",
        }
    )
    root = fetch("tiny", NoProgress())
    assert root == home / "corpora" / "tiny-1.0"
    assert _tree(root) == {"__init__.py": BOOBY_TRAP, "deep/er/cast.h": "int x;\n"}
    assert _left(home) == ["tiny-1.0"]
    assert fetch("tiny", NoProgress()) == root
    assert (tmp_path / "log").read_text() == "tiny==1.0\n"  # no second download


def test_a_tarball_gives_the_kept_folders_and_files(index: Index, home: Path, tmp_path: Path) -> None:
    folder = tarfile.TarInfo("package/lib")
    folder.type = tarfile.DIRTYPE
    index.tarball(
        folder,
        ("package/package.json", "{}"),
        ("package/main.js", "main()\n"),
        ("package/main.js.map", "{}"),
        ("package/other.js", "other()\n"),
        ("package/lib/a.js", "a()\n"),
        ("package/lib/inner/b.ts", "b();\n"),
        ("package/library/c.js", "c()\n"),
    )
    root = fetch("mini", NoProgress())
    assert _tree(root) == {"main.js": "main()\n", "lib/a.js": "a()\n", "lib/inner/b.ts": "b();\n"}
    assert fetch("mini", NoProgress()) == root
    assert (tmp_path / "log").read_text() == "mini@2.0\n"


def test_other_bytes_are_not_opened(index: Index, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.put(TINY_WHEEL, _zip({"tiny/a.py": "a\n"}), sha256="0" * 64)
    index.put(MINI_NPM, _tgz(("package/main.js", "a\n")), sha256="0" * 64)

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("opened before the checksum was right")

    monkeypatch.setattr(zipfile, "ZipFile", opened)
    monkeypatch.setattr(tarfile, "open", opened)
    for name in ("tiny", "mini"):
        with pytest.raises(ChecksumMismatch, match=r"not opened.*--repo"):
            fetch(name, NoProgress())
    assert _left(home) == []


@pytest.mark.parametrize("data", [b"no archive", b"", _zip({"tiny/a.py": "a" * 5000})[:-30]])
def test_damaged_wheels(data: bytes, index: Index, home: Path) -> None:
    index.put(TINY_WHEEL, data)
    with pytest.raises(CorruptFile, match=r"tiny-1\.0-py3-none-any\.whl cannot be read"):
        fetch("tiny", NoProgress())
    assert _left(home) == []


def _long_tarball() -> bytes:
    return _tgz(("package/main.js", "".join(map(str, range(5000)))))


@pytest.mark.parametrize(
    "data",
    [
        b"no archive",
        b"",
        _long_tarball()[:500],
        _long_tarball().replace(_long_tarball()[400:420], b"\xff" * 20),
    ],
)
def test_damaged_tarballs(data: bytes, index: Index, home: Path) -> None:
    index.put(MINI_NPM, data)
    with pytest.raises(CorruptFile, match=r"mini-2\.0\.tgz cannot be read"):
        fetch("mini", NoProgress())
    assert _left(home) == []


def _zip_link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("tiny/link.py")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    "member",
    ["/tiny/a.py", "tiny/../../a.py", "../a.py", "tiny\\..\\a.py", "C:/tiny/a.py", _zip_link()],
    ids=str,
)
def test_wheels_with_members_that_lead_elsewhere(
    member: str | zipfile.ZipInfo, index: Index, home: Path, tmp_path: Path
) -> None:
    index.wheel({"tiny/good.py": "good\n", member: "../../../secret.py"})
    with pytest.raises(CorruptFile, match="member that no source package needs"):
        fetch("tiny", NoProgress())
    assert _left(home) == []
    assert not list(tmp_path.rglob("a.py"))


@pytest.mark.parametrize(
    "name, type",
    [
        ("/package/lib/a.js", tarfile.REGTYPE),
        ("package/lib/../../../a.js", tarfile.REGTYPE),
        ("package/lib/a.js", tarfile.SYMTYPE),
        ("package/lib/a.js", tarfile.LNKTYPE),
        ("package/lib/a.js", tarfile.FIFOTYPE),
        ("package/lib/a.js", tarfile.CHRTYPE),
    ],
)
def test_tarballs_with_members_that_lead_elsewhere(
    name: str, type: bytes, index: Index, home: Path, tmp_path: Path
) -> None:
    member = tarfile.TarInfo(name)
    member.type = type
    member.linkname = "../../../secret.js"
    index.tarball(("package/lib/good.js", "good\n"), member)
    with pytest.raises(CorruptFile, match="member that no source package needs"):
        fetch("mini", NoProgress())
    assert _left(home) == []
    assert not list(tmp_path.rglob("a.js"))


def test_archives_are_not_unpacked_without_limit(
    index: Index, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel({"tiny/a.py": "a" * 100, "tiny/b.py": "b" * 100})
    monkeypatch.setattr(corpora, "MAX_FILE_BYTES", 99)
    with pytest.raises(CorruptFile, match="larger"):
        fetch("tiny", NoProgress())
    monkeypatch.setattr(corpora, "MAX_FILE_BYTES", 100)
    monkeypatch.setattr(corpora, "MAX_FILES", 1)
    with pytest.raises(CorruptFile, match="larger"):
        fetch("tiny", NoProgress())
    assert _left(home) == []
    monkeypatch.setattr(corpora, "MAX_FILES", 2)
    assert len(_tree(fetch("tiny", NoProgress()))) == 2


def test_an_archive_without_sources_is_wrong(index: Index, home: Path) -> None:
    index.wheel({"other/a.py": "a\n", "tiny/readme.md": "b\n"})
    with pytest.raises(CorruptFile, match="no source files in tiny/"):
        fetch("tiny", NoProgress())
    assert _left(home) == []


def test_an_interrupted_fetch_leaves_nothing(
    index: Index, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel({"tiny/a.py": "a\n", "tiny/b.py": "b\n"})

    def interrupt(path: Path) -> None:
        if path.name == "b.py":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(corpora, "sync_file", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch("tiny", NoProgress())
    assert _left(home) == []
    assert set(_tree(fetch("tiny", NoProgress()))) == {"a.py", "b.py"}


def test_leftovers_of_a_killed_process_are_removed(index: Index, home: Path) -> None:
    index.wheel({"tiny/a.py": "a\n"})
    (home / "corpora" / ".tiny-abc" / "sources").mkdir(parents=True)
    (home / "corpora" / ".mini-abc").mkdir()  # may be at work
    fetch("tiny", NoProgress())
    assert sorted(_left(home)) == [".mini-abc", "tiny-1.0"]


def test_unknown_names_are_told_the_known_ones() -> None:
    with pytest.raises(UnknownCorpus, match=r"'klick'.*click, requests.*--repo"):
        fetch("klick", NoProgress())


def test_no_network(index: Index, home: Path) -> None:
    with pytest.raises(CorpusUnavailable, match=r"No matching distribution found for click.*pip's settings"):
        fetch("click", NoProgress())
    with pytest.raises(CorpusUnavailable, match=r"404 Not Found: rxjs@7.8.2.*npm's settings.*--repo"):
        fetch("rxjs", NoProgress())
    assert _left(home) == []


def test_no_tools(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pip() -> list[str]:
        raise SourceUnavailable("the mirror", "no pip was found")

    monkeypatch.setattr(corpora, "pip_command", no_pip)
    monkeypatch.setattr(corpora.shutil, "which", lambda name: None)
    with pytest.raises(CorpusUnavailable, match="no pip was found"):
        fetch("click", NoProgress())
    with pytest.raises(CorpusUnavailable, match=r"npm, which was not found; install Node\.js"):
        fetch("rxjs", NoProgress())
    assert _left(home) == []


def test_a_home_that_cannot_be_written(home: Path, index: Index) -> None:
    index.wheel({"tiny/a.py": "a\n"})
    home.write_text("a file")
    with pytest.raises(HomeNotWritable, match="DRAFTLINE_HOME"):
        fetch("tiny", NoProgress())
