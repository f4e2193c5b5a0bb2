"""Other files at the begin of a prompt: between a family's own marks, or as comments.

They stand before everything that changes while the user types, so they are read once and then cached, as
long as the same files come in the same order. In families whose suffix comes first and that have no marks
of their own the comments stand behind the suffix, and are read again whenever it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.api import TextCodec
from lsp_server.documents.comments import line_comment
from lsp_server.documents.positions import without_surrogates
from lsp_server.prompts.families import Family, FileMarks

# Models were trained with a name here; no name is worth the tokens and the privacy.
_REPOSITORY = "project"

# Names of languages as people write them, where upper-casing the identifier's first letter is not enough.
_LANGUAGES = {
    "cpp": "C++",
    "csharp": "C#",
    "javascript": "JavaScript",
    "javascriptreact": "JavaScript",
    "typescript": "TypeScript",
    "typescriptreact": "TypeScript",
    "php": "PHP",
    "shellscript": "Shell",
    "sql": "SQL",
    "html": "HTML",
    "css": "CSS",
}


@dataclass(frozen=True)
class ContextFile:
    """A piece of another place that a prompt shows: a path as a reader would write it, and its text."""

    path: str
    text: str


@dataclass(frozen=True)
class Lead:
    """Tokens that stand before the document's text.

    Attributes:
        outside: before the template's first control token.
        inside: at the begin of the prefix.
        header: how many of them are the family's header, the last ones.
    """

    outside: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()
    header: int = 0


class LeadWriter:
    """Writes leads for one family and vocabulary."""

    def __init__(self, family: Family, codec: TextCodec) -> None:
        self._codec = codec
        self._header = family.header
        known = family.files is not None and all(
            codec.special(mark) is not None for mark in family.files.needs
        )
        self._marks: FileMarks | None = family.files if known else None

    def lead(
        self, files: Sequence[ContextFile], most: int, path: str, language_id: str, most_header: int
    ) -> Lead:
        """At most ``most`` tokens of other files, and the family's header for the document.

        A file is shown whole or not at all: those that do not fit are left out, the least related first.

        Args:
            files: least related first.
            path: the document's own; it follows the other files, so that the model sees where they end.
            most_header: tokens that the header may take; a longer one is left out.
        """
        header = self._write_header(path, language_id)
        if len(header) > most_header:
            header = ()
        if not files or most <= 0:
            return Lead((), header, len(header))
        begin, end = self._frame(path, language_id, headed=bool(header))
        room = most - len(begin) - len(end)
        kept: list[tuple[int, ...]] = []
        for file in reversed(files):
            ids = self._write(file, language_id)
            if ids and len(ids) <= room:
                room -= len(ids)
                kept.append(ids)
        if not kept:
            return Lead((), header, len(header))
        shown = (*begin, *(id for ids in reversed(kept) for id in ids), *end)
        if self._marks is not None and not self._marks.in_prefix:
            return Lead(shown, header, len(header))
        return Lead((), (*shown, *header), len(header))

    def _frame(self, path: str, language_id: str, headed: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What stands before the first file and behind the last one; a header tells the path already."""
        path = _one_line(path)
        if self._marks is None:
            return (), self._comment([path], language_id) if path and not headed else ()
        begin: tuple[int, ...] = ()
        repository = self._codec.special(self._marks.repository) if self._marks.repository else None
        if repository is not None:
            begin = (repository, *self._text(_REPOSITORY + "\n"))
        return begin, (*self._mark(self._marks.before), *self._text(path + "\n"))

    def _write(self, file: ContextFile, language_id: str) -> tuple[int, ...]:
        path = _one_line(file.path)
        text = file.text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
        if self._marks is None:
            return self._comment([path, *text.split("\n")], language_id)
        before, behind = self._marks.before, self._marks.behind
        return (*self._mark(before), *self._text(f"{path}\n{text}\n"), *self._mark(behind))

    def _write_header(self, path: str, language_id: str) -> tuple[int, ...]:
        if not self._header or not path:
            return ()
        language = _LANGUAGES.get(language_id, language_id.capitalize())
        lines = [line.format(path=_one_line(path), language=language) for line in self._header]
        return self._comment(lines, language_id)

    def _comment(self, lines: Sequence[str], language_id: str) -> tuple[int, ...]:
        """Nothing in a language without comments: as code the text would be part of the document."""
        comment = line_comment(language_id)
        if comment is None:
            return ()
        return self._text("".join(comment.wrap(line) + "\n" for line in lines))

    def _mark(self, mark: str) -> tuple[int, ...]:
        id = self._codec.special(mark) if mark.startswith("<") else None
        return (id,) if id is not None else self._text(mark)

    def _text(self, text: str) -> tuple[int, ...]:
        return tuple(self._codec.encode(without_surrogates(text))) if text else ()


def _one_line(path: str) -> str:
    return " ".join(path.split("\n")).replace("\r", " ").strip()
