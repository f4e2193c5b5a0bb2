"""Files that must never be stored or put into a prompt, and files that are no source of context."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from lsp_server.context.ignore_file import IgnorePatterns

IGNORE_FILE = ".draftlineignore"

# No ignore file can take these back: a repository must not be able to open its user's secrets.
SECRET_PATTERNS: tuple[str, ...] = (
    ".env*",
    "*.env",
    ".dev.vars",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.asc",
    "*.gpg",
    "*.crt",
    "*.cert",
    "*.cer",
    "*.der",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials*",
    "*credentials.json",
    "secret.*",
    "secrets",
    "secrets.*",
    "*.secret",
    "*.secrets",
    "service-account*.json",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    "*.tfvars",
    "*.tfstate*",
    "kubeconfig",
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".azure/",
    ".kube/",
    "**/.docker/config.json",
)

# Names relative to a folder; all but the last are looked for in a workspace folder only, and yield to it.
_OURS = (IGNORE_FILE,)
_GIT = (".git/info/exclude", ".gitignore")

# What separates a file from the archive or the revision that it is in, and a fragment.
_INNER = re.compile(r"::|!|#|:")

_SECRETS = IgnorePatterns(SECRET_PATTERNS, ignore_case=True)


@dataclass
class Exclusions:
    """Decides by path. Keeps the ignore files of the workspace folders, each read again when it changes.

    Ignore files may lie in any folder below a workspace folder, as git has it: a pattern is relative to its
    file's folder, deeper files and later lines decide, and nothing below an excluded folder comes back.
    A file outside of all folders belongs to the nearest folder above that looks like one, see
    `workspace_root`.
    """

    _roots: list[Path] = field(default_factory=list)
    _files: dict[Path, tuple[int, int, IgnorePatterns]] = field(default_factory=dict)

    def set_roots(self, roots: list[Path]) -> None:
        """The workspace folders; a file belongs to the deepest one above it.

        A folder that a link leads to counts by both names: editors open files by the one or the other.
        """
        names = {name for root in roots for name in _names(root)}
        self._roots = sorted(names, key=lambda root: len(root.parts), reverse=True)
        self._files.clear()

    def excludes(self, path: Path) -> bool:
        """Whether the file is a secret by its name or covered by a ``.draftlineignore``: never to be read.

        A link is judged by its own name and by the name of what it points to.
        """
        return any(_SECRETS.matches(name.as_posix()) or self._covered(name, _OURS) for name in _names(path))

    def git_ignores(self, path: Path) -> bool:
        """Whether git ignores the file, by ``.gitignore`` and ``.git/info/exclude``; no source of context.

        Whether it is tracked all the same is not asked.
        """
        return any(self._covered(name, _GIT) for name in _names(path))

    def _covered(self, path: Path, kinds: tuple[str, ...]) -> bool:
        root = next((root for root in self._roots if path.is_relative_to(root)), None)
        if root is None:
            root = workspace_root(path)
        parts = path.relative_to(root).parts
        # Ignore files from the root down to the folder that is looked at, each with its depth.
        stack: list[tuple[int, IgnorePatterns]] = []
        folder = root
        for depth, part in enumerate(parts):
            for kind in kinds if depth == 0 else kinds[-1:]:
                patterns = self._ignore_file(folder / kind)
                if patterns is not None:
                    stack.append((depth, patterns))
            for at, patterns in reversed(stack):
                name = "/".join(parts[at : depth + 1])
                decision = patterns.decide(name, is_directory=depth + 1 < len(parts))
                if decision is not None:
                    if decision:
                        return True
                    break
            folder /= part
        return False

    def _ignore_file(self, file: Path) -> IgnorePatterns | None:
        try:
            status = file.stat()
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._files.get(file)
        if known is not None and known[:2] == stamp:
            return known[2]
        try:
            lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
        except OSError:
            return None
        patterns = IgnorePatterns(lines)
        self._files[file] = (*stamp, patterns)
        return patterns


def _names(path: Path) -> list[Path]:
    """The path as given, and what it is once links are followed, if that differs."""
    absolute = Path(os.path.abspath(path))
    real = Path(os.path.realpath(absolute))
    return [absolute] if real == absolute else [absolute, real]


def names_secret(uri: str) -> bool:
    """Whether a URI of any scheme names a secret, e.g. ``vscode-vfs://github/o/r/.env`` or ``untitled:.env``.

    What stands for a file within an archive or a revision counts too; there is no file to follow links from.
    """
    _, colon, rest = uri.partition(":")
    rest = (rest if colon else uri).partition("?")[0]
    if rest.startswith("//") and "/" in rest[2:]:
        rest = rest[2:].partition("/")[2]  # what stands before it is a host
    path = unquote(rest).replace("\\", "/")
    return any(map(_SECRETS.matches, (path, *_INNER.split(path))))


def workspace_root(path: Path) -> Path:
    """Root of a file in no workspace folder: the nearest folder above it that holds an ignore file or a
    repository, else its own folder."""
    absolute = Path(os.path.abspath(path))
    folders = absolute.parents or [absolute]
    for folder in folders:
        # Not Path.exists: it raises for a name that is too long, or in a folder that must not be looked into.
        if any(os.path.exists(folder / name) for name in (IGNORE_FILE, ".git")):
            return folder
    return folders[0]
