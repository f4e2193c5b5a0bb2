"""Workspace folders: which one a document belongs to, and the settings that hold there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from pygls.uris import to_fs_path

from lsp_server.context.ignore_file import IgnorePatterns
from lsp_server.settings import Settings, merge

# Schemes whose URIs carry a file's path; of a notebook's cell the fragment names the cell.
_WITH_PATH = ("file", "vscode-notebook-cell")


def path_of(uri: str) -> Path | None:
    """The file that a URI names, None where it names none (a text that was never saved)."""
    scheme, _, rest = uri.partition(":")
    if scheme not in _WITH_PATH:
        return None
    path = to_fs_path("file:" + (rest if scheme == "file" else rest.partition("#")[0]))
    return Path(path) if path else None


@dataclass
class Folder:
    """Attributes:
    path: None if it is not on this machine's disk.
    settings: None until the client has told its own.
    """

    uri: str
    path: Path | None
    settings: Settings | None = None

    def holds(self, uri: str, path: Path | None) -> bool:
        """Whether a document, given by URI and path, is in this folder."""
        if self.path is not None and path is not None:
            return path.is_relative_to(self.path)
        return (uri + "/").startswith(self.uri.rstrip("/") + "/")


class WorkspaceFolders:
    """The folders the client has open. A document belongs to the deepest one above it."""

    def __init__(self) -> None:
        self._folders: list[Folder] = []

    def set(self, uris: Sequence[str]) -> None:
        """Take the client's folders; those known before keep their settings."""
        known = {folder.uri: folder for folder in self._folders}
        self._folders = [known.get(uri) or Folder(uri, path_of(uri)) for uri in uris]

    @property
    def uris(self) -> list[str]:
        """In the client's order."""
        return [folder.uri for folder in self._folders]

    @property
    def roots(self) -> list[Path]:
        """Paths of those on this machine's disk."""
        return [folder.path for folder in self._folders if folder.path is not None]

    def of(self, uri: str) -> Folder | None:
        """The folder of a document, None if it is in none."""
        path = path_of(uri)
        holding = [folder for folder in self._folders if folder.holds(uri, path)]
        return max(holding, key=lambda folder: len(folder.uri), default=None)

    def configure(self, base: Settings, values: dict[str, object]) -> tuple[bool, list[str]]:
        """Give each folder ``base`` with what the client sent for it, by URI.

        Returns:
            whether anything changed, and warnings about invalid values.
        """
        changed, warnings = False, []
        for folder in self._folders:
            settings, complaints, _ = merge(base, values.get(folder.uri))
            changed |= folder.settings != settings
            folder.settings = settings
            warnings += complaints
        return changed, warnings

    def settings_of(self, uri: str, default: Settings) -> Settings:
        """The settings for a document; ``default`` outside all folders."""
        folder = self.of(uri)
        return default if folder is None or folder.settings is None else folder.settings

    def any_enabled(self) -> bool:
        """Whether suggestions are switched on in one of the folders."""
        return any(folder.settings is not None and folder.settings.enable for folder in self._folders)

    def disabled(self, uri: str, settings: Settings) -> bool:
        """Whether a document is in one of the folders of the setting ``disabledFolders``."""
        path = path_of(uri)
        if path is None or not settings.disabled_folders:
            return False
        folder = self.of(uri)
        root = None if folder is None else folder.path
        return any(_covers(entry, root, path) for entry in settings.disabled_folders)


def _covers(entry: str, root: Path | None, path: Path) -> bool:
    entry = os.path.expanduser(entry)
    if PurePath(entry).is_absolute():
        return path.is_relative_to(entry)
    if root is None or not path.is_relative_to(root):
        return False
    inner = entry.replace("\\", "/").removeprefix("./").strip("/")
    if inner in ("", ".", "*", "**"):
        return True
    return IgnorePatterns([f"/{inner}/"]).matches(path.relative_to(root).as_posix())
