"""Settings of folders, and what follows when they change."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from lsp_server.completion.reasons import Reason
from lsp_server.context.workspaces import uri_of
from lsp_server.server import DraftlineServer, create_server
from lsp_server.settings import Settings
from tests.fake_engine import FakeEngine


def _server(*folders: Path) -> DraftlineServer:
    server = create_server(Settings(debounce_ms=0), FakeEngine)
    server.folders.set([uri_of(folder) for folder in folders])
    server.exclusions.set_roots(server.folders.roots)
    server.context.set_roots(server.folders.roots)
    return server


def _open(server: DraftlineServer, uri: str, text: str) -> None:
    server.open_document(types.TextDocumentItem(uri, "python", 1, text))


def test_prefetch_follows_the_folder(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    server = _server(one, two)
    server.folder_values = {uri_of(two): {"prefetch": False}}
    server.configure({"enable": False})
    prefetch = server.completion.prefetch
    assert prefetch.enabled and prefetch.allowed(uri_of(one / "a.py"))
    assert not prefetch.allowed(uri_of(two / "a.py"))
    server.configure({"enable": False, "prefetch": False})
    assert not prefetch.allowed(uri_of(one / "a.py")) and not prefetch.allowed("untitled:Untitled-1")


def test_an_index_is_built_anew_when_gitignore_counts_or_no_longer_does(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("made.py\n")
    (tmp_path / "made.py").write_text("class Parcel:\n    pass\n")
    server = _server(tmp_path)
    server.context._background = False
    server.configure({"enable": False})
    main = uri_of(tmp_path / "main.py")

    def found() -> bool:
        index = server.context._index_for(main)
        assert index is not None
        return bool(index.lookup("Parcel", "python"))

    assert not found()
    server.configure({"enable": False, "respectGitignore": False})
    assert found()
    server.configure({"enable": False, "maxLines": 3, "respectGitignore": False})
    kept = server.context._index_for(main)
    server.configure({"enable": False, "maxLines": 4, "respectGitignore": False})
    assert server.context._index_for(main) is kept, "other settings have nothing to do with it"
    server.configure({"enable": False})
    assert not found()


def test_a_secret_by_name_is_not_stored_in_any_scheme() -> None:
    server = _server()
    for uri in ("vscode-vfs://github/o/r/.env", "ssh://host/home/u/.env", "untitled:.env", "FILE:///w/.env"):
        _open(server, uri, "KEY=1")
        assert server.store.version(uri) is None, uri
        assert server.store._withheld[uri] is Reason.EXCLUDED
    _open(server, "vscode-vfs://github/o/r/main.py", "x = 1")
    assert len(server.store) == 1
