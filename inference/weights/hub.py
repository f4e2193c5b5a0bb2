"""The model hub, through huggingface_hub: its cache, endpoint, tokens and proxies apply."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from pathlib import Path
from typing import Any

from inference import paths
from inference.errors import ChecksumMismatch, DiskFull, DraftlineError, HomeNotWritable
from inference.weights import verify
from inference.weights.catalog import CatalogEntry
from inference.weights.disk import DISK_FULL, NOT_WRITABLE, read_json, write_json
from inference.weights.progress import Progress
from inference.weights.unavailable import SourceUnavailable

SOURCE = "the hub"

# Without a probe of its own, huggingface_hub retries an unreachable hub for minutes.
PROBE_SECONDS = 4.5

# Files of a repository that make a model in transformers layout.
_WANTED = (".safetensors", ".json")


def cache_directory() -> Path:
    """The hub's cache, found without importing the library (which takes a third of a second)."""
    environment = os.environ
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(name):
            return Path(os.path.expandvars(environment[name])).expanduser()
    base = environment.get("XDG_CACHE_HOME", "~/.cache")
    home = environment.get("HF_HOME", os.path.join(base, "huggingface"))
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def cached(entry: CatalogEntry) -> Path | None:
    """An entry's file or directory in the hub's cache, complete by size, or None."""
    if entry.hub.file is None:
        return _cached_directory(entry)
    snapshots = cache_directory() / f"models--{entry.hub.repository.replace('/', '--')}" / "snapshots"
    for path in sorted(snapshots.glob(f"*/{entry.hub.file}")):
        if path.is_file() and path.stat().st_size == entry.bytes and not _is_another_version(path, entry):
            return path
    return None


def _is_another_version(path: Path, entry: CatalogEntry) -> bool:
    """The cache names the blob behind a large file after its checksum."""
    name = path.resolve().name
    return len(name) == 64 and name != entry.sha256


def discard(path: Path) -> None:
    """Remove a damaged file of the cache: the link and the blob, which would be found again."""
    verify.forget(path)
    path.resolve().unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _listing(entry: CatalogEntry) -> Path:
    return paths.downloads_dir() / f"{entry.file}.hub.json"


def _cached_directory(entry: CatalogEntry) -> Path | None:
    listing = read_json(_listing(entry))
    if listing is None:
        return None
    directory = Path(listing["directory"])
    for name, size in listing["files"].items():
        file = directory / name
        if not file.is_file() or file.stat().st_size != size:
            return None
    return directory


def own_files(entry: CatalogEntry) -> tuple[Path, ...]:
    """What this module writes outside the hub's cache."""
    return (_listing(entry),)


def probe() -> None:
    """Find out within PROBE_SECONDS whether the hub answers.

    Raises:
        SourceUnavailable: with the reason, e.g. a name that does not resolve or the offline switch.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise SourceUnavailable(SOURCE, "offline mode is set (HF_HUB_OFFLINE)")
    outcome: list[BaseException | None] = []

    def ask() -> None:
        try:
            from huggingface_hub import get_session

            # Any answer will do, a refusal included: what matters is that somebody is there.
            get_session().head(constants.ENDPOINT, timeout=PROBE_SECONDS, follow_redirects=False)
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    # In a thread, since resolving a name cannot be given a timeout; it is left behind if it hangs.
    _use_system_certificates()
    thread = threading.Thread(target=ask, name="hub-probe", daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    if not outcome:
        raise SourceUnavailable(SOURCE, f"{constants.ENDPOINT} did not answer within 5 s")
    if outcome[0] is not None:
        raise SourceUnavailable(SOURCE, f"{constants.ENDPOINT} cannot be reached ({_short(outcome[0])})")


def _use_system_certificates() -> None:
    # Companies' own certificate authorities are known to the system, not to Python's bundle.
    with contextlib.suppress(ImportError):
        import truststore

        truststore.inject_into_ssl()


def _short(error: BaseException) -> str:
    text = (str(error).strip().splitlines() or [""])[0]
    return (text or type(error).__name__)[:200]


def download(entry: CatalogEntry, progress: Progress) -> Path:
    """Download into the hub's cache and verify; an interrupted download continues where it was.

    Raises:
        SourceUnavailable: the hub cannot be reached or does not give out the files.
        ChecksumMismatch: the bytes are not those announced; they were removed.
        DiskFull, HomeNotWritable: the hub's cache, which need not be where our own files are.
    """
    probe()
    try:
        if entry.hub.file is None:
            return _download_directory(entry, progress)
        return _download_file(entry, progress)
    except (DraftlineError, SourceUnavailable):  # `progress` may raise to give up
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise DiskFull(
                f"The disk of {cache_directory()} became full while downloading {entry.name}.",
                "Free some space, or set HF_HOME to a directory on a larger disk.",
            ) from error
        if error.errno in NOT_WRITABLE:
            raise HomeNotWritable(
                f"{cache_directory()} cannot be written: {error.strerror}.",
                "Set HF_HOME to a directory that you may write to.",
            ) from error
        raise SourceUnavailable(SOURCE, _short(error)) from error
    except Exception as error:  # httpx and huggingface_hub errors share no narrower base
        raise SourceUnavailable(SOURCE, _short(error)) from error


def _download_one(entry: CatalogEntry, name: str, size: int, revision: str, progress: Progress) -> Path:
    from huggingface_hub import hf_hub_download

    progress.begin(f"downloading {name} from the hub", size)
    try:
        path = hf_hub_download(
            entry.hub.repository, name, revision=revision, tqdm_class=_bar_reporting_to(progress)
        )
    finally:
        progress.end()
    return Path(path)


def _download_file(entry: CatalogEntry, progress: Progress) -> Path:
    assert entry.hub.file is not None and entry.sha256 is not None
    path = _download_one(entry, entry.hub.file, entry.bytes, entry.hub.revision, progress)
    _require(path, entry.sha256, verify.sha256_of(path, progress), entry)
    verify.remember(path, entry.sha256)
    return path


def _download_directory(entry: CatalogEntry, progress: Progress) -> Path:
    from huggingface_hub import HfApi

    info = HfApi().model_info(entry.hub.repository, revision=entry.hub.revision, files_metadata=True)
    files: dict[str, int] = {}
    directory = Path()
    for sibling in info.siblings or ():
        name = sibling.rfilename
        if not name.endswith(_WANTED) or "/" in name:
            continue
        # The commit just listed, so that all files and checksums belong together.
        path = _download_one(entry, name, sibling.size or 0, info.sha or entry.hub.revision, progress)
        if sibling.lfs is not None:
            _require(path, sibling.lfs.sha256, verify.sha256_of(path, progress), entry)
            verify.remember(path, sibling.lfs.sha256)
        elif sibling.blob_id is not None:
            _require(path, sibling.blob_id, _git_object_id(path), entry)
        files[name] = path.stat().st_size
        directory = path.parent
    if not any(name.endswith(".safetensors") for name in files):
        raise SourceUnavailable(SOURCE, f"{entry.hub.repository} has no safetensors files")
    write_json(_listing(entry), {"directory": str(directory), "files": files})
    return directory


def _git_object_id(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _require(path: Path, expected: str, found: str, entry: CatalogEntry) -> None:
    if found == expected:
        return
    discard(path)
    raise ChecksumMismatch(
        f"{path.name} from the hub has the checksum {found[:16]}..., not {expected[:16]}...; it was removed.",
        f"Run `draftline model fetch {entry.name}` again; if it repeats, the file was changed at its source.",
    )


def _bar_reporting_to(progress: Progress) -> Any:
    """The library shows progress through a class of tqdm; this one passes it on and shows nothing."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options.pop("name", None)
            options["disable"] = True
            super().__init__(*arguments, **options)
            # A resumed download starts with what is there already.
            self.update(options.get("initial", 0))

        def update(self, n: float | None = 1) -> None:
            if n and n > 0:
                progress.advance(int(n))

    return Bar
