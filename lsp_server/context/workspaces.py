"""Which documents may be shown together: those of one workspace folder."""

from __future__ import annotations

from pathlib import Path

from pygls.uris import from_fs_path, to_fs_path


def path_of(uri: str) -> Path | None:
    """The file of a document, None if it is not a file."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return None if path is None else Path(path)


def uri_of(path: Path) -> str:
    """A file's URI."""
    return from_fs_path(str(path)) or path.as_uri()


class Workspaces:
    """The folders; a document belongs to the deepest one above it."""

    def __init__(self) -> None:
        self.roots: tuple[Path, ...] = ()

    def set_roots(self, roots: list[Path]) -> None:
        """The workspace folders."""
        self.roots = tuple(sorted(set(roots), key=lambda root: (-len(root.parts), root.as_posix())))

    def root_of(self, uri: str) -> Path | None:
        """The folder that a document belongs to, None if it is in none."""
        path = path_of(uri)
        if path is None:
            return None
        return next((root for root in self.roots if path.is_relative_to(root)), None)

    def place_of(self, uri: str) -> str:
        """The same for documents that may be shown together.

        Outside of every workspace folder these are the files of one directory; a document that is no file
        stands alone.
        """
        path = path_of(uri)
        if path is None:
            return uri
        return (self.root_of(uri) or path.parent).as_posix()

    def shown_path(self, uri: str) -> str:
        """A path as a reader would write it: from the workspace folder, never from the user's home."""
        path = path_of(uri)
        if path is None:
            return uri.rpartition("/")[2]
        root = self.root_of(uri)
        return path.name if root is None else path.relative_to(root).as_posix()
