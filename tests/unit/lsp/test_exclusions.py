"""What must never be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.context.exclusions import Exclusions, names_secret, workspace_root
from lsp_server.context.ignore_file import IgnorePatterns


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        ".ENV",
        "prod.env",
        "server.pem",
        "deploy.key",
        "id_rsa",
        "id_rsa.pub",
        "id_ed25519",
        "credentials",
        "credentials.json",
        ".netrc",
        "cert.p12",
        "secrets.yml",
        "secrets.toml",
        ".npmrc",
        "terraform.tfvars",
        ".ssh/config",
        ".aws/config",
        ".docker/config.json",
    ],
)
def test_secrets_are_excluded_everywhere(tmp_path: Path, name: str) -> None:
    assert Exclusions().excludes(tmp_path / "project" / name)


@pytest.mark.parametrize("name", ["main.py", "environment.py", "keyboard.py", "monkey.py", "Makefile"])
def test_ordinary_names_are_not(tmp_path: Path, name: str) -> None:
    assert not Exclusions().excludes(tmp_path / name)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("vscode-vfs://github/owner/repo/.env", True),
        ("vscode-vfs://github/owner/repo/src/main.py", False),
        ("vscode-remote://ssh-remote%2Bhost/home/u/.ssh/config", True),
        ("ssh://secret.example.com/home/u/main.py", False),
        ("scp://host//srv/%2Eenv.local", True),
        ("untitled:.env", True),
        ("untitled:C%3A%5Cwork%5Cprod.env", True),
        ("untitled:Untitled-1", False),
        ("git:/work/.env?%7B%22ref%22%3A%22HEAD%22%7D", True),
        ("git:/work/a.py?/.env", False),
        ("zipfile:///work/a.zip::conf/.env", True),
        ("jar:file:///work/a.jar!/id_rsa", True),
        ("FILE:///work/.env", True),
        ("buffer", False),
        (".env", True),
    ],
)
def test_secrets_are_known_by_name_in_every_scheme(uri: str, expected: bool) -> None:
    assert names_secret(uri) is expected


def test_a_link_to_a_secret_is_a_secret(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    link = tmp_path / "notes.txt"
    link.symlink_to(tmp_path / ".env")
    assert Exclusions().excludes(link)


def test_ignore_file_of_the_deepest_root_and_its_changes(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / ".draftlineignore").write_text("*.sql\n")
    (inner / ".draftlineignore").write_text("generated/\n!.env\n")
    exclusions = Exclusions()
    exclusions.set_roots([tmp_path, inner])
    assert exclusions.excludes(tmp_path / "a.sql")
    assert not exclusions.excludes(inner / "a.sql")
    assert exclusions.excludes(inner / "generated" / "deep" / "a.py")
    assert exclusions.excludes(inner / ".env"), "an ignore file cannot open secrets"
    (inner / ".draftlineignore").write_text("a.sql\nlonger than before\n")
    assert exclusions.excludes(inner / "a.sql")
    (inner / ".draftlineignore").unlink()
    assert not exclusions.excludes(inner / "a.sql")


def test_a_workspace_folder_behind_a_link_has_both_names(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    (real / ".draftlineignore").write_text("private/\n")
    for root in (real, link):
        exclusions = Exclusions()
        exclusions.set_roots([root])
        assert exclusions.excludes(real / "private" / "a.py")
        assert exclusions.excludes(link / "private" / "a.py")
        assert not exclusions.excludes(link / "a.py")


def test_a_file_in_no_workspace_folder_obeys_the_ignore_file_above_it(tmp_path: Path) -> None:
    (tmp_path / ".draftlineignore").write_text("diary/\n")
    exclusions = Exclusions()
    exclusions.set_roots([tmp_path / "elsewhere"])
    assert exclusions.excludes(tmp_path / "diary" / "day.md")
    assert not exclusions.excludes(tmp_path / "day.md")


def test_workspace_root(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".draftlineignore").write_text("")
    assert workspace_root(deep / "x.py") == tmp_path


def test_a_file_that_cannot_be_looked_for_is_not_excluded(tmp_path: Path) -> None:
    assert not Exclusions().excludes(tmp_path / ("a" * 300) / "x.py")
    assert not Exclusions().excludes(Path(tmp_path.anchor))


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        (["*.log"], "a/b.log", True),
        (["/b.log"], "a/b.log", False),
        (["/b.log"], "b.log", True),
        (["a/*.log"], "a/b.log", True),
        (["a/*.log"], "a/c/b.log", False),
        (["a/**/b.log"], "a/c/d/b.log", True),
        (["a/**/b.log"], "a/b.log", True),
        (["**/b.log"], "x/y/b.log", True),
        (["a/**"], "a/x/y", True),
        (["build/"], "build/x", True),
        (["build/"], "build", False),
        (["build/"], "src/build/x", True),
        (["*.log", "!keep.log"], "keep.log", False),
        (["logs/", "!logs/keep.log"], "logs/keep.log", True),
        (["[ab].py"], "a.py", True),
        (["[!ab].py"], "a.py", False),
        (["?.py"], "ab.py", False),
        (["# comment", "", "  "], "comment", False),
        ([r"\#x"], "#x", True),
        (["[z-a]"], "[z-a]", True),
        (["x.py  "], "x.py", True),
    ],
)
def test_patterns(patterns: list[str], path: str, expected: bool) -> None:
    assert IgnorePatterns(patterns).matches(path) is expected
