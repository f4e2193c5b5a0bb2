"""Files that must never be stored or put into a prompt."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

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
    ".docker/config.json",
)

_SECRETS = IgnorePatterns(SECRET_PATTERNS, ignore_case=True)


@dataclass
class Exclusions:
    """Decides by path. Keeps the ignore file of each workspace root, read again when it changes."""

    _roots: list[Path] = field(default_factory=list)
    _files: dict[Path, tuple[int, int, IgnorePatterns]] = field(default_factory=dict)

    def set_roots(self, roots: list[Path]) -> None:
        """The workspace folders; a file belongs to the deepest one above it."""
        self._roots = sorted(roots, key=lambda root: len(root.parts), reverse=True)
        self._files.clear()

    def excludes(self, path: Path) -> bool:
        """Whether the file is a secret by its name or covered by an ignore file.

        A link is judged by its own name and by the name of what it points to.
        """
        absolute = Path(os.path.abspath(path))
        if self._excludes(absolute):
            return True
        real = Path(os.path.realpath(absolute))
        return real != absolute and self._excludes(real)

    def _excludes(self, path: Path) -> bool:
        if _SECRETS.matches(path.as_posix()):
            return True
        for root in self._roots:
            if path.is_relative_to(root):
                patterns = self._ignore_file(root)
                return patterns is not None and patterns.matches(path.relative_to(root).as_posix())
        return False

    def _ignore_file(self, root: Path) -> IgnorePatterns | None:
        file = root / IGNORE_FILE
        try:
            status = file.stat()
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._files.get(root)
        if known is not None and known[:2] == stamp:
            return known[2]
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        patterns = IgnorePatterns(lines)
        self._files[root] = (*stamp, patterns)
        return patterns


def workspace_root(path: Path) -> Path:
    """Root of a file given to the command line: the nearest folder above it that holds an ignore
    file or a repository, else its own folder."""
    folders = Path(os.path.abspath(path)).parents
    for folder in folders:
        if (folder / IGNORE_FILE).exists() or (folder / ".git").exists():
            return folder
    return folders[0]
