"""Folders of a workspace: whose settings hold, and where suggestions are switched off."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lsp_server.context.exclusions import Exclusions
from lsp_server.settings import Settings
from lsp_server.workspace import WorkspaceFolders, path_of


def test_settings_of_the_deepest_folder() -> None:
    folders = WorkspaceFolders()
    folders.set(["file:///w", "file:///w/inner", "vscode-remote://host/r"])
    values: dict[str, object] = {
        "file:///w/inner": {"maxLines": 3},
        "vscode-remote://host/r": {"enable": False},
        "file:///w": {"maxLines": -1},
    }
    changed, warnings = folders.configure(Settings(max_lines=5), values)
    assert changed and len(warnings) == 1
    assert folders.configure(Settings(max_lines=5), values)[0] is False

    def lines(uri: str) -> int:
        return folders.settings_of(uri, Settings(max_lines=9)).max_lines

    assert lines("file:///w/a.py") == 5
    assert lines("file:///w/inner/deep/a.py") == 3
    assert lines("file:///w/innermost.py") == 5
    assert lines("file:///elsewhere/a.py") == lines("untitled:Untitled-1") == 9
    assert not folders.settings_of("vscode-remote://host/r/x.py", Settings()).enable
    assert lines("vscode-remote://host/rest/x.py") == 9
    folders.set(["file:///w"])
    assert lines("file:///w/inner/a.py") == 5


@pytest.mark.parametrize(
    ("entry", "name", "expected"),
    [
        ("src/generated", "src/generated/deep/a.py", True),
        ("src/generated/", "src/generated/a.py", True),
        ("./src", "src/a.py", True),
        ("src", "lib/src/a.py", False),
        ("**/src", "lib/src/a.py", True),
        ("src", "src.py", False),
        ("pack*", "packages/a.py", True),
        ("packages/*/dist", "packages/one/dist/a.js", True),
        ("packages/*/dist", "packages/dist/a.js", False),
        (".", "a.py", True),
        ("/w/src", "src/a.py", True),
        ("/w/sr", "src/a.py", False),
    ],
)
def test_disabled_folders(entry: str, name: str, expected: bool) -> None:
    folders = WorkspaceFolders()
    folders.set(["file:///w"])
    settings = Settings(disabled_folders=frozenset({entry}))
    assert folders.disabled(f"file:///w/{name}", settings) is expected


def test_paths() -> None:
    assert path_of("file:///a%20b/c.py") == Path("/a b/c.py")
    assert path_of("vscode-notebook-cell:/a/b.ipynb#W0") == Path("/a/b.ipynb")
    assert path_of("untitled:Untitled-1") is None


PATTERNS = [
    ["*.log", "!keep.log"],
    ["/b.log", "a/*.log"],
    ["a/**/b.log"],
    ["**/b.log", "!/a/c/b.log"],
    ["a/**", "!a/keep"],
    ["a/*", "!a/c/"],
    ["build/", "!build/keep"],
    ["[!ab].py", "[[:digit:]]x"],
    ["a**b"],
    ["foo/**/"],
    ["*", "!*/", "!*.py"],
    ["/*", "!/src/"],
    ["*/x"],
    [r"\#x", r"\!x", "# a.py"],
    ["**/foo/bar", "A.py"],
]
PATHS = [
    "a.py",
    "c.py",
    "b.log",
    "a/b.log",
    "a/c/b.log",
    "a/keep",
    "a/keep.log",
    "a/c/keep",
    "build",
    "build/keep",
    "src/build/x",
    "5x",
    "axxb",
    "foo/a",
    "foo/a/b",
    "a/b.c",
    "src/x",
    "x",
    "a/x",
    "a/b/x",
    "#x",
    "!x",
    "q/foo/bar/z",
    "keep.log",
    "x/b.log",
]


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
@pytest.mark.parametrize("patterns", PATTERNS, ids=" ".join)
@pytest.mark.parametrize("nested", [False, True])
def test_ignored_as_git_has_it(tmp_path: Path, patterns: list[str], nested: bool) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("c.py\n")
    root = tmp_path / "a" if nested else tmp_path
    root.mkdir(exist_ok=True)
    (root / ".gitignore").write_text("\n".join(patterns) + "\n")
    if nested:
        (tmp_path / ".gitignore").write_text("*.log\n")
    asked = "\0".join(PATHS)
    command = ["git", "-C", str(tmp_path), "-c", "core.ignorecase=false", "-c", "core.excludesFile=/dev/null"]
    done = subprocess.run(
        [*command, "check-ignore", "--no-index", "-z", "--stdin"], input=asked, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    expected = set(filter(None, done.stdout.split("\0")))
    exclusions = Exclusions()
    exclusions.set_roots([tmp_path])
    assert {path for path in PATHS if exclusions.git_ignores(tmp_path / path)} == expected
    assert not any(exclusions.excludes(tmp_path / path) for path in PATHS)
