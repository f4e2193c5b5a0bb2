"""The documents the client has open."""

from __future__ import annotations

from collections.abc import Iterable

from lsp_server.completion.reasons import Reason
from lsp_server.documents.positions import PositionEncoding
from lsp_server.documents.text import Change, Document

# Editors themselves stop highlighting far below this; it bounds memory, not usefulness.
MAX_CHARS = 16 * 1024 * 1024


class Withheld(Exception):
    """There is no text to complete; ``reason`` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class DocumentStore:
    """Texts by URI. Excluded and oversized documents are known by name only, never stored."""

    def __init__(self, encoding: PositionEncoding = "utf-16", max_chars: int = MAX_CHARS) -> None:
        self.encoding: PositionEncoding = encoding
        self._max_chars = max_chars
        self._documents: dict[str, Document] = {}
        self._withheld: dict[str, Reason] = {}

    def open(self, uri: str, version: int, language_id: str, text: str, *, excluded: bool = False) -> None:
        """Start to follow a document; opening an open one replaces it."""
        self.close(uri)
        if excluded:
            self._withheld[uri] = Reason.EXCLUDED
        elif len(text) > self._max_chars:
            self._withheld[uri] = Reason.TOO_LARGE
        else:
            self._documents[uri] = Document(uri, version, language_id, text)

    def change(self, uri: str, version: int, changes: Iterable[Change]) -> None:
        """Apply edits. Edits of documents that are not stored are dropped."""
        document = self._documents.get(uri)
        if document is not None:
            document.apply(version, changes, self.encoding)

    def close(self, uri: str) -> None:
        """Forget a document and its text."""
        self._documents.pop(uri, None)
        self._withheld.pop(uri, None)

    def withhold(self, uri: str, reason: Reason) -> None:
        """Drop the text of an open document, e.g. when an ignore file now covers it."""
        if self._documents.pop(uri, None) is not None:
            self._withheld[uri] = reason

    def get(self, uri: str) -> Document:
        """The open document.

        Raises:
            Withheld: excluded, too large, closed or never opened.
        """
        document = self._documents.get(uri)
        if document is None:
            raise Withheld(self._withheld.get(uri, Reason.UNKNOWN_DOCUMENT))
        return document

    def version(self, uri: str) -> int | None:
        """Version of an open document, None if it is not stored."""
        document = self._documents.get(uri)
        return None if document is None else document.version

    @property
    def uris(self) -> list[str]:
        """Of the stored documents."""
        return list(self._documents)

    def __len__(self) -> int:
        return len(self._documents)
