"""The routes of ``notebookDocument/*``: cells are documents; the notebook says how they follow each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server.documents.notebook import Cell

if TYPE_CHECKING:
    from lsp_server.server import DraftlineServer

# All cells of all kinds of notebooks: prose is context too.
SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")], save=True
)


def register(server: DraftlineServer) -> None:
    """Add the routes."""
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(_did_open)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(_did_change)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(_did_close)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)(_did_save)


def _did_open(ls: DraftlineServer, params: types.DidOpenNotebookDocumentParams) -> None:
    notebook = params.notebook_document
    for uri in ls.notebooks.close(notebook.uri):
        ls.close_document(uri)
    ls.notebooks.open(notebook.uri, _cells(notebook.cells))
    for document in params.cell_text_documents:
        ls.open_document(document)


def _did_change(ls: DraftlineServer, params: types.DidChangeNotebookDocumentParams) -> None:
    uri = params.notebook_document.uri
    changes = params.change.cells
    if changes is None:
        return
    if changes.structure is not None or changes.data:
        ls.completion.suggestions.edited(uri)
    if changes.structure is not None:
        array = changes.structure.array
        for closed in changes.structure.did_close or ():
            ls.close_document(closed.uri)
        ls.notebooks.splice(uri, array.start, array.delete_count, _cells(array.cells or ()))
        for document in changes.structure.did_open or ():
            ls.open_document(document)
    ls.notebooks.replace(uri, _cells(changes.data or ()))
    for content in changes.text_content or ():
        ls.change_document(content.document.uri, content.document.version, content.changes)


def _did_save(ls: DraftlineServer, params: types.DidSaveNotebookDocumentParams) -> None:
    for uri in ls.notebooks.cells(params.notebook_document.uri):
        ls.learn(uri)


def _did_close(ls: DraftlineServer, params: types.DidCloseNotebookDocumentParams) -> None:
    for uri in ls.notebooks.close(params.notebook_document.uri):
        ls.close_document(uri)
    for document in params.cell_text_documents:
        ls.close_document(document.uri)


def _cells(cells: Iterable[types.NotebookCell]) -> list[Cell]:
    return [Cell(cell.document, cell.kind == types.NotebookCellKind.Code) for cell in cells]
