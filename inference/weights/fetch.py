"""Getting the original weights of a catalog entry: the hub first, then the mirror."""

from __future__ import annotations

from pathlib import Path

from inference import paths
from inference.errors import ChecksumMismatch, DiskFull, DraftlineError, HomeNotWritable, NoNetwork
from inference.weights import hub, mirror, verify
from inference.weights.catalog import CatalogEntry
from inference.weights.disk import disk_full_explained, require_room
from inference.weights.lock import exclusive
from inference.weights.progress import Progress
from inference.weights.unavailable import SourceUnavailable

# Bytes on disk per byte of a model while it is fetched and converted: the mirror's parts and the
# file they are joined to, then the file and its int8 form (1.6 times a 4-bit file).
_ROOM_FACTOR = 3.0


def present(entry: CatalogEntry) -> Path | None:
    """The original on this disk, ours or in the hub's cache, complete by size; or None."""
    own = paths.downloads_dir() / entry.file
    if own.is_file() and own.stat().st_size == entry.bytes:
        return own
    return hub.cached(entry)


def locate(entry: CatalogEntry, progress: Progress) -> Path | None:
    """The original with the right checksum, or None; reads the file only if it was never checked.

    Raises:
        ChecksumMismatch: a complete file is there, but other bytes than the catalog names.
    """
    path = present(entry)
    if path is None or entry.sha256 is None:
        return path
    found = verify.checksum(path, progress)
    if found != entry.sha256:
        raise ChecksumMismatch(
            f"{path} has the checksum {found[:16]}..., not {entry.sha256[:16]}...: it is damaged.",
            f"Run `draftline model fetch {entry.name}`, which replaces it.",
        )
    return path


def own_files(entry: CatalogEntry) -> tuple[Path, ...]:
    """All paths a fetch may leave in the downloads directory; they need not exist."""
    final = paths.downloads_dir() / entry.file
    return (
        final,
        final.with_name(final.name + ".tmp"),
        mirror.parts_directory(entry),
        *hub.own_files(entry),
    )


def fetch(entry: CatalogEntry, progress: Progress) -> Path:
    """Download what is missing of an entry and return the verified file or directory.

    Safe to interrupt at any moment and to run from several processes: one downloads, the others
    wait for it.

    Raises:
        NoNetwork: no source could be reached; names the cause of each.
        ChecksumMismatch: the bytes that came were wrong.
        DiskFull: with what is needed and what is there.
        HomeNotWritable: neither the hub's cache nor our own directory can be written.
    """
    with exclusive(entry.name, f"downloading {entry.name}", progress):
        paths.downloads_dir().mkdir(parents=True, exist_ok=True)
        _remove_damaged(entry, progress)
        path = locate(entry, progress)
        if path is not None:
            return path
        require_room(
            paths.downloads_dir(),
            int(entry.bytes * _ROOM_FACTOR) - _already_here(entry),
            f"Downloading and converting {entry.name}",
        )
        with disk_full_explained(paths.downloads_dir(), f"downloading {entry.name}"):
            return _from_any_source(entry, progress)


def _from_any_source(entry: CatalogEntry, progress: Progress) -> Path:
    reasons = []
    problem: DraftlineError | None = None
    try:
        return hub.download(entry, progress)
    except SourceUnavailable as unavailable:
        reasons.append(str(unavailable))
    except (ChecksumMismatch, DiskFull, HomeNotWritable) as error:
        problem = error  # the mirror may still have the right bytes, and puts them elsewhere
    if entry.mirror is not None:
        try:
            return mirror.download(entry, progress)
        except SourceUnavailable as unavailable:
            reasons.append(str(unavailable))
    if problem is not None:
        raise problem
    raise NoNetwork(
        f"{entry.name} could not be downloaded from anywhere. {'; '.join(reasons)}.",
        "Check the network and proxy settings (HTTPS_PROXY, HF_ENDPOINT, pip's index) and run "
        f"`draftline model fetch {entry.name}` again, or copy {entry.file} from another machine and "
        "give its path as --model.",
    )


def _remove_damaged(entry: CatalogEntry, progress: Progress) -> None:
    """A complete file with wrong bytes is replaced; asking for a fetch is consent enough."""
    for _ in range(2):  # ours, then the one in the hub's cache
        path = present(entry)
        if path is None or entry.sha256 is None or verify.checksum(path, progress) == entry.sha256:
            return
        hub.discard(path)


def _already_here(entry: CatalogEntry) -> int:
    directory = mirror.parts_directory(entry)
    return sum(part.stat().st_size for part in directory.glob("part*.bin")) if directory.is_dir() else 0
