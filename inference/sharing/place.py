"""Where the engine processes of a user are found, and which of them runs what a server wants."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inference import paths
from inference.api import EngineConfig
from inference.errors import DraftlineError, UnknownModel
from inference.sharing.link import Link, Listener, UnixListener, connect_unix
from inference.sharing.messages import PROTOCOL
from inference.sharing.pipe import PipeListener, connect_pipe

# Names a directory for tests, and for machines where the usual ones are no good.
DIRECTORY_VARIABLE = "DRAFTLINE_RUNTIME_DIR"
# sun_path has 108 bytes on Linux and 104 on macOS, the zero at the end included.
MOST_PATH_BYTES = 103
WINDOWS = sys.platform == "win32"

# Of the environment, what changes what an engine computes, or where it looks for files.
_DECISIVE = ("CUDA_", "DNNL_", "GOMP_", "HF_", "KMP_", "MKL_", "OMP_", "ONEDNN_", "PYTORCH_", "TORCH_")


class NoPrivatePlace(DraftlineError):
    """No directory is known that only the user can write to."""

    code = "no-private-directory"


@dataclass(frozen=True)
class Place:
    """Names of one engine.

    Attributes:
        directory: private to the user.
        key: of what the engine runs.
    """

    directory: Path
    key: str

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.directory / f"{self.key}.sock"

    @property
    def pipe(self) -> str:
        """The same on Windows, where pipes have a name space of their own."""
        user = hashlib.sha256(str(self.directory).encode()).hexdigest()[:16]
        return rf"\\.\pipe\draftline-{user}-{self.key}"

    @property
    def lock(self) -> Path:
        """Held by the process while it lives."""
        return self.directory / f"{self.key}.lock"

    @property
    def pid(self) -> Path:
        """The process id, for those who get no answer."""
        return self.directory / f"{self.key}.pid"

    @property
    def log(self) -> Path:
        """What the process prints."""
        return self.directory / f"{self.key}.log"

    def listen(self) -> Listener:
        """For the process that holds the lock. Raises OSError."""
        if WINDOWS:
            return PipeListener(self.pipe, self.directory / "pipe.key")
        return UnixListener(self.socket)

    def connect(self, timeout: float) -> Link:
        """Raises OSError: nobody is there; TimeoutError: somebody is, and does not answer."""
        if WINDOWS:
            return connect_pipe(self.pipe, self.directory / "pipe.key", timeout)
        return connect_unix(self.socket, timeout)


def place_for(config: EngineConfig) -> Place:
    """Where an engine with this configuration is.

    Raises:
        NoPrivatePlace
    """
    return Place(private_directory(), key_of(config))


def private_directory() -> Path:
    """The first good one of those that `candidates` names; it is made if it is missing.

    Raises:
        NoPrivatePlace
    """
    troubles = []
    for path in candidates():
        try:
            _make_private(path)
        except OSError as error:
            troubles.append(f"{path}: {error.strerror or error}")
        else:
            return path
    raise NoPrivatePlace(
        "There is no private directory for a shared engine: " + "; ".join(troubles) + ".",
        f"Name one in {DIRECTORY_VARIABLE}, or switch sharedEngine off.",
    )


def candidates() -> Iterator[Path]:
    """``$DRAFTLINE_RUNTIME_DIR`` alone if it is set; else the user's runtime directory, one in the
    directory for temporary files, and one beside the weights."""
    if named := os.environ.get(DIRECTORY_VARIABLE):
        yield Path(named).expanduser().absolute()
        return
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and not _of_another_user(Path(runtime)):
        yield Path(runtime) / "draftline"
    if not WINDOWS:
        # Where an editor was started without the variable, the others' directory is there all the same.
        usual = Path(f"/run/user/{os.getuid()}")
        if usual.is_dir() and not runtime:
            yield usual / "draftline"
        yield Path(tempfile.gettempdir()) / f"draftline-{os.getuid()}"
    yield paths.home().absolute() / "run"


def _of_another_user(path: Path) -> bool:
    """As after a ``sudo`` that keeps the environment: what was made there would be in its owner's way."""
    try:
        return not WINDOWS and path.stat().st_uid != os.getuid()
    except OSError:
        return False


def key_of(config: EngineConfig) -> str:
    """A short name of everything that makes one engine different from another.

    That is the configuration, the program (version, files, Python), the weights' home, and the environment.
    """
    values = dataclasses.asdict(absolute(config))
    if _fetched(config.model):
        # Consent decides nothing any more, and two editors may differ in it.
        del values["allow_download"]
    what = {
        "config": values,
        "protocol": PROTOCOL,
        "program": program(),
        "python": [sys.executable, sys.version],
        "home": str(paths.home().absolute()),
        "environment": {name: os.environ[name] for name in sorted(os.environ) if name.startswith(_DECISIVE)},
    }
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def absolute(config: EngineConfig) -> EngineConfig:
    """The same from every directory: paths of models are relative to the server's."""
    from inference.weights import store  # not in the engine's process before it is alone

    def name(model: str) -> str:
        path = store.as_path(model)
        return model if path is None else str(path)

    draft = config.draft_model
    return dataclasses.replace(
        config, model=name(config.model), draft_model=None if draft is None else name(draft)
    )


def program() -> list[object]:
    """Which files of ours a process would run, and when the last one changed: versions are not enough for
    those who work on Draftline itself."""
    root = Path(__file__).resolve().parents[1]
    files = sorted(root.rglob("*.py"))
    return [str(root), len(files), max(file.stat().st_mtime_ns for file in files)]


def _fetched(model: str) -> bool:
    from inference.weights import store

    try:
        return store.as_path(model) is not None or bool(store.conversions(model) or store.locate(model))
    except UnknownModel:
        return True
    except (DraftlineError, OSError):
        return False


def _make_private(path: Path) -> None:
    """Raises OSError: it cannot be made, belongs to somebody else, or others can get in."""
    if not WINDOWS and len(os.fsencode(path)) + len("/0123456789abcdef.sock") > MOST_PATH_BYTES:
        raise OSError("its name is too long for a socket")
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    found = path.lstat()  # not through a link, which somebody else may have put there
    if not stat.S_ISDIR(found.st_mode):
        raise OSError("it is no directory")
    if WINDOWS:
        return
    if found.st_uid != os.getuid():
        raise OSError(f"it belongs to user {found.st_uid}")
    if found.st_mode & 0o077:
        raise OSError(f"others can read it (mode {stat.S_IMODE(found.st_mode):o})")
    if not os.access(path, os.W_OK | os.X_OK):
        raise OSError("it cannot be written to")
