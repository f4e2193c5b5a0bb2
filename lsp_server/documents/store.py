"""The documents the client has open."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lsp_server.completion.reasons import Reason
from lsp_server.documents.positions import PositionEncoding
from lsp_server.documents.text import Change, Document

# Bounds memory, not usefulness: what a request or an edit costs does not grow with the file.
MAX_CHARS = 64 * 1024 * 1024


class Withheld(Exception):
    """There is no text to complete; ``reason`` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class DocumentStore:
    """Texts by URI. Excluded and oversized documents are known by name only, never stored.

    A document that a private key is pasted into is dropped; it comes back when it is opened again, or when
    a client sends its whole text without the key.
    """

    def __init__(
        self,
        encoding: PositionEncoding = "utf-16",
        max_chars: int = MAX_CHARS,
        on_forget: Callable[[str], None] = lambda uri: None,
    ) -> None:
        """``on_forget`` is told the URI of a document of which nothing made so far may be kept, as it is
        withheld from now on or a secret came to light in it."""
        self.encoding: PositionEncoding = encoding
        self.on_forget = on_forget
        self._max_chars = max_chars
        self._documents: dict[str, Document] = {}
        self._withheld: dict[str, Reason] = {}
        # Language identifiers of those withheld for what their text was.
        self._by_content: dict[str, str] = {}

    def open(self, uri: str, version: int, language_id: str, text: str, *, excluded: bool = False) -> None:
        """Start to follow a document; opening an open one replaces it."""
        self.close(uri)
        if excluded:
            self._withheld[uri] = Reason.EXCLUDED
        elif len(text) > self._max_chars:
            self._withheld[uri] = Reason.TOO_LARGE
            self._by_content[uri] = language_id
        else:
            self._documents[uri] = Document(uri, version, language_id, text)
            self._check(self._documents[uri])

    def change(self, uri: str, version: int, changes: Iterable[Change]) -> None:
        """Apply edits. Edits of documents that are not stored are dropped, until a whole text comes."""
        document = self._documents.get(uri)
        if document is not None:
            before = document.secrets
            document.apply(version, changes, self.encoding)
            if document.secrets > before:
                self.on_forget(uri)
            self._check(document)
        elif uri in self._by_content:
            edits = list(changes)
            whole = [at for at, change in enumerate(edits) if change.start is None]
            if whole:
                self.open(uri, version, self._by_content[uri], edits[whole[-1]].text)
                self.change(uri, version, edits[whole[-1] + 1 :])

    def _check(self, document: Document) -> None:
        reason = Reason.EXCLUDED if document.holds_key else None
        if document.size > self._max_chars:
            reason = Reason.TOO_LARGE
        if reason is not None:
            self.withhold(document.uri, reason)
            self._by_content[document.uri] = document.language_id

    def close(self, uri: str) -> None:
        """Forget a document and its text."""
        self._documents.pop(uri, None)
        self._withheld.pop(uri, None)
        self._by_content.pop(uri, None)

    def withhold(self, uri: str, reason: Reason) -> None:
        """Drop the text of an open document, e.g. when an ignore file now covers it."""
        if self._documents.pop(uri, None) is not None:
            self._withheld[uri] = reason
            self.on_forget(uri)

    def edited_line(self, uri: str) -> int:
        """Line of the last edit of a stored document."""
        document = self._documents.get(uri)
        return 0 if document is None else document.edited_line

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
