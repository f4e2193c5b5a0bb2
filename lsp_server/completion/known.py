"""What is known for a place without asking the engine: suggestions that were made before."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from lsp_server.completion.answer import Answer, made, placed
from lsp_server.completion.options import Selected
from lsp_server.completion.pipeline import Suggestion
from lsp_server.completion.popup import with_entry
from lsp_server.completion.ranges import ItemRange
from lsp_server.completion.running import Place, Running
from lsp_server.completion.suggestions import Origin, Shown, SuggestionCache


class Known:
    """Looks up suggestions for places, and remembers what generations say."""

    def __init__(self, suggestions: SuggestionCache, context_version: Callable[[str], Hashable]) -> None:
        """``context_version`` is that of what a document's prompt is made from beside it."""
        self._suggestions = suggestions
        self._context_version = context_version

    def answer(self, wanted: Place) -> Answer | None:
        """The suggestion at ``wanted``, None if none is known."""
        if wanted.selected is not None:
            return self._beyond_entry(wanted, wanted.selected)
        found = self.find(wanted)
        if found is None:
            return None
        return made(wanted, placed(wanted, found[1], found[0]), None, found[0].origin)

    def find(self, at: Place) -> tuple[Shown, str] | None:
        """What applies at a place and what is left of its text, see `SuggestionCache.find`."""
        return self._suggestions.find(
            at.snapshot,
            at.cursor,
            replaces_rest=at.options.replaces_rest,
            context=self._context_version(at.snapshot.uri),
        )

    def remember(self, running: Running, suggestion: Suggestion) -> None:
        """Keep what a generation has said, in place of what is kept of it already."""
        at, text = running.place, suggestion.text
        snapshot, cursor = at.snapshot, at.cursor
        if at.selected is not None:
            # With the entry accepted: the popup may stay for some keys more.
            snapshot, cursor = with_entry(snapshot, cursor.line, at.selected)
            text = text[len(at.selected.text) :]
        origin: Origin = "prefetch" if running.prefetch else "cache"
        new = Shown(snapshot, cursor, text, origin, running.prepared.context)
        if running.entry is not None:
            new = self._suggestions.replace(running.entry, new)
        else:
            self._suggestions.add(new)
        running.entry = new

    def remember_lines(self, running: Running) -> bool:
        """Keep the lines that are certain; False if there are none yet."""
        lines, known = running.partial(), running.entry
        if lines is not None and (known is None or len(lines.text) > len(known.text)):
            self.remember(running, lines)
        return running.entry is not None

    def _beyond_entry(self, wanted: Place, selected: Selected) -> Answer | None:
        """What is known behind the popup's entry: a popup that says the same changes nothing on screen."""
        snapshot, cursor = with_entry(wanted.snapshot, wanted.cursor.line, selected)
        found = self.find(Place(snapshot, cursor, wanted.options))
        # The entry's range covers no bracket.
        if found is None or found[0].replaces()[0]:
            return None
        range = ItemRange(selected.start, selected.end)
        return made(wanted, Suggestion(selected.text + found[1], range), None, found[0].origin)
