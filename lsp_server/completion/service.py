"""One completion request from arrival to answer: superseding, caching, debouncing, joining, cancelling."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from inference.api import EngineStatus, GenerationResult, TextEngine
from inference.errors import DraftlineError
from lsp_server.completion.acceptance import Acceptance
from lsp_server.completion.answer import Answer, made, placed
from lsp_server.completion.asking import Asking
from lsp_server.completion.candidates import is_new, sampled
from lsp_server.completion.debounce import Debounce
from lsp_server.completion.edits import edit_of, is_key
from lsp_server.completion.known import Known
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.popup import selected_entry
from lsp_server.completion.prefetch import AFTER_ACCEPTANCE_SECONDS, Prefetch, after_acceptance
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.completion.resting import Resting
from lsp_server.completion.running import Place, Running, was_stopped
from lsp_server.completion.suggestions import Shown, SuggestionCache
from lsp_server.completion.tickets import Superseded, Ticket
from lsp_server.context.gather import ContextGatherer
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Change, Point, Snapshot
from lsp_server.statistics import Statistics

__all__ = ["Answer", "CompletionService"]


class CompletionService:
    """Answers requests on open documents. Lives on the event loop."""

    def __init__(
        self,
        store: DocumentStore,
        engine: Callable[[], TextEngine | None],
        status: Callable[[], EngineStatus],
        statistics: Statistics | None = None,
        gatherer: ContextGatherer | None = None,
    ) -> None:
        """``engine`` gives the present engine; ``status`` what is known while there is none; ``gatherer``
        finds what a prompt shows beyond the window."""
        self._store = store
        self.asking = Asking(engine, status, self._ended, gatherer)
        self._tickets: dict[str, Ticket] = {}
        self._running: dict[str, Running] = {}
        self._answered: dict[str, Place] = {}
        self.statistics = statistics or Statistics()
        self.suggestions = SuggestionCache()
        self._known = Known(self.suggestions, self.asking.context_version)
        self.acceptance = Acceptance()
        self.debounce = Debounce()
        self.prefetch = Prefetch(self._start_prefetch)
        self.resting = Resting(self.asking, self._was_read)
        # Told a document and the version of its text when an answer given half has become longer.
        self.on_grown: Callable[[str, int], None] = lambda uri, version: None

    async def complete(
        self,
        uri: str,
        position: Point,
        options: CompletionOptions,
        *,
        debounce_ms: float = 0,
        first_line_ms: float = 0,
        candidates: int = 1,
        selected: tuple[Point, Point, str] | None = None,
        allowed: Callable[[Snapshot], Reason | None] = lambda snapshot: None,
    ) -> Answer:
        """The suggestion at ``position`` (in the client's units).

        Everything up to the first ``await`` happens on arrival, so the text is the one the request
        was made for. Cancelling the task stops the decoding, unless a request for what the user has
        typed along it follows.

        Args:
            first_line_ms: after so long whole lines are answered while the model still writes; 0 never.
            candidates: suggestions to choose from; with more than one nothing is answered half.
            selected: range and text of the selected popup entry, if any.
            allowed: a reason not to answer for this text, e.g. its language is switched off.

        Raises:
            Withheld: the document is not open or must not be read.
        """
        arrived = time.monotonic()
        self._overtake(uri)
        snapshot = self._store.get(uri).snapshot()
        refusal = allowed(snapshot)
        if refusal is not None:
            self._stop(uri)
            return Answer(None, refusal)
        cursor = snapshot.locate(position, self._store.encoding)
        if snapshot.in_secret(cursor):
            self._stop(uri)
            return Answer(None, Reason.SECRET)
        popup = selected_entry(snapshot, cursor, selected, self._store.encoding)
        wanted = Place(snapshot, cursor, options, popup)
        running = self._joinable(wanted)
        ticket = self._tickets[uri] = Ticket(arrived, first_line_ms if candidates == 1 else 0)
        try:
            answer = None if running is not None and candidates > 1 else self._known.answer(wanted)
            if answer is None:
                answer = await self._answer(ticket, wanted, running, debounce_ms)
            if candidates > 1:
                answer = await self._with_others(ticket, wanted, answer, candidates)
        except Superseded:
            return Answer(None, Reason.SUPERSEDED, superseded=True)
        except NoSuggestion as none:
            answer = Answer(None, none.reason, none.message)
        except DraftlineError as error:
            answer = Answer(None, error.code, str(error))
        finally:
            if self._tickets.get(uri) is ticket:
                del self._tickets[uri]
        return self._deliver(wanted, answer)

    def rests(
        self,
        uri: str,
        position: Point,
        options: CompletionOptions,
        allowed: Callable[[Snapshot], Reason | None] = lambda snapshot: None,
    ) -> None:
        """The cursor rests where it was moved to, at ``position`` (in the client's units): what the first key
        there will need is read now, unless somebody waits for an answer.

        Raises:
            Withheld: the document is not open or must not be read.
        """
        snapshot = self._store.get(uri).snapshot()
        if self.busy or allowed(snapshot) is not None:
            return
        cursor = snapshot.locate(position, self._store.encoding)
        at = Place(snapshot, cursor, options)
        if snapshot.in_secret(cursor) or self._known.find(at) is not None:
            return
        self._make_way("")
        if not self._running:
            self.resting.at(at)

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._tickets)

    def supersede(self, uri: str) -> None:
        """Answer the request of this document in flight with ``null`` now, and stop the work for it."""
        self._overtake(uri)
        self._stop(uri)

    def edited(self, uri: str, changes: Sequence[Change]) -> None:
        """A document was changed, and the store knows already.

        What the engine writes is stopped at once where the edit contradicts it.
        """
        self.debounce.edited(uri)
        self.suggestions.edited(uri)
        running = self._running.get(uri)
        if self._store.version(uri) is None:
            return
        if running is None:
            self._overtake(uri)  # it waits for a pause, or for more suggestions, in an older text
        if running is None and not self.acceptance.follows(uri):
            self.statistics.count("charactersTyped", is_key(changes))
            return  # a snapshot costs what the document is long
        snapshot = self._store.get(uri).snapshot()
        edit = edit_of(changes, snapshot, self._store.encoding)
        if edit is None:
            self.acceptance.forget(uri)
            return
        taken = self.acceptance.edited(uri, edit.start, edit.inserted, edit.removed)
        if taken is not None:
            self.accepted(taken.amount, taken.characters)
            if taken.amount == "whole" and (answered := self._answered.get(uri)) is not None:
                at = Place(snapshot, edit.end, answered.options)
                self.prefetch.later(lambda: self._unless_known(at), AFTER_ACCEPTANCE_SECONDS)
        else:
            self.statistics.count("charactersTyped", is_key(changes))
        if running is not None and not edit.removed and not running.leads_to(snapshot, edit.cursors):
            self.supersede(uri)

    def accepted(self, amount: str, characters: int) -> None:
        """Count an acceptance: "whole", "line" or "word"."""
        self.statistics.count(f"accepted{amount.capitalize()}")
        self.statistics.count("charactersAccepted", characters)

    def closed(self, uri: str) -> None:
        """A document was closed: stop its request and forget its suggestions."""
        self.supersede(uri)
        self.suggestions.forget(uri)
        self.acceptance.forget(uri)
        self.prefetch.forget(uri)
        self.resting.forget(uri)
        self._answered.pop(uri, None)
        self.debounce.closed(uri)
        self.asking.closed(uri)
        engine = self.asking.engine()
        if engine is not None:
            engine.close_document(uri)

    def reset(self) -> None:
        """Forget all answers, also those to come: other settings or another model make new ones."""
        self.shutdown()
        self.suggestions.clear()
        self.prefetch.clear()
        self._answered.clear()

    def shutdown(self) -> None:
        """Answer everything in flight, and stop the engine's work for it."""
        for uri in {*self._tickets, *self._running}:
            self.supersede(uri)
        self.prefetch.cancel()
        self.resting.leave()

    # -- one request

    async def _answer(
        self, ticket: Ticket, wanted: Place, running: Running | None, debounce_ms: float
    ) -> Answer:
        waited = running is not None
        # Also before the wait: what the model does meanwhile would be waited for.
        self._make_way(wanted.snapshot.uri)
        while True:
            if running is None:
                if not waited:
                    await ticket.unless_superseded(self.debounce.wait(wanted.snapshot.uri, debounce_ms))
                running = self._submit(wanted, ticket.arrived)
            asked = time.monotonic()
            with running.follow():
                answer = await self._follow(ticket, running, wanted)
            if answer is not None:
                if running.place is wanted:
                    self.debounce.answered(time.monotonic() - asked)
                return answer
            # It says something else than what was typed, or has no more to say.
            running.cancel()
            running, waited = None, True

    async def _follow(self, ticket: Ticket, running: Running, wanted: Place) -> Answer | None:
        """The answer in what the engine writes, None if it leads elsewhere."""
        own = running.place is wanted
        typed = None if own else running.typed(wanted)
        # Counted from the request that began it: the user has waited since then.
        deadline = running.began + ticket.first_line_ms / 1000 if ticket.first_line_ms else None
        while not running.ended:
            if typed is not None and not running.agrees(typed):
                return None
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                left = None
                if wanted.selected is None and self._known.remember_lines(running):
                    answer = self._from_entry(running, wanted)
                    if answer is not None:
                        return answer
            await ticket.wait(running.news(), left)
        if running.error is not None:
            raise running.error
        if not own:
            return self._from_entry(running, wanted)
        if running.suggestion is not None:
            return made(wanted, running.suggestion, running)
        superseded = running.reason == Reason.SUPERSEDED
        return Answer(None, running.reason, running.message, superseded, result=running.result)

    def _from_entry(self, running: Running, wanted: Place) -> Answer | None:
        """What is left of the running answer, as far as it is known, at ``wanted``."""
        entry, typed = running.entry, running.typed(wanted)
        if entry is None or typed is None:
            return None
        text = entry.left(typed, replaces_rest=wanted.options.replaces_rest)
        if text is None:
            return None
        made_by = "model" if running.place is wanted else "prefetch" if running.prefetch else "stream"
        return made(wanted, placed(wanted, text, entry), running, made_by)

    async def _with_others(self, ticket: Ticket, wanted: Place, first: Answer, candidates: int) -> Answer:
        """``first`` with sampled suggestions beside it."""
        nothing = first.reason == Reason.EMPTY or first.reason.startswith("filtered:")
        if first.superseded or (first.suggestion is None and not nothing):
            return first
        found = [] if first.suggestion is None else [first.suggestion]
        try:
            prepared = self.asking.prepare(wanted)
        except NoSuggestion:
            return first
        self._make_way(wanted.snapshot.uri)
        for number in range(1, candidates):
            request = replace(prepared, request=sampled(prepared.request, number))
            try:
                running = self.asking.launch(wanted, request, ticket.arrived)
            except (NoSuggestion, DraftlineError):
                break  # the queue is full, say; what is there is worth answering
            try:
                while not running.ended:
                    await ticket.wait(running.news(), None)
            finally:
                running.cancel()
            other = running.suggestion
            if other is not None and is_new(other.text, [known.text for known in found]):
                found.append(other)
        if not found:
            return first
        if wanted.selected is None:
            for other in reversed(found):
                shown = Shown(wanted.snapshot, wanted.cursor, other.text, context=prepared.context)
                self.suggestions.add(shown)
        return replace(
            made(wanted, found[0], None, first.made_by),
            result=first.result,
            others=tuple(found[1:]),
        )

    def _deliver(self, wanted: Place, answer: Answer) -> Answer:
        """Give an answer to the client, unless the document has changed meanwhile."""
        uri = wanted.snapshot.uri
        if answer.suggestion is None:
            # ``[]`` for an older text would hide what the client shows for the present one.
            old = self._store.version(uri) != wanted.snapshot.version
            return replace(answer, superseded=answer.superseded or old)
        if self._store.version(uri) != wanted.snapshot.version:
            # The client would show it where the cursor is now. It is kept for typing along.
            return Answer(None, Reason.STALE, superseded=True, result=answer.result)
        if wanted.selected is None:
            found = self._known.find(wanted)
            if found is not None:
                self.suggestions.show(found[0])
            texts = (answer.suggestion.text, *(other.text for other in answer.others))
            self.acceptance.show(uri, wanted.cursor, texts)
            self._answered[uri] = wanted
            self.prefetch.later(lambda: self._after(wanted))
        else:
            self.acceptance.forget(uri)
        return answer

    # -- the engine's work

    def _submit(self, wanted: Place, began: float) -> Running:
        prepared = self.asking.prepare(wanted)
        self._make_way(wanted.snapshot.uri)
        running = self._running[wanted.snapshot.uri] = self.asking.launch(wanted, prepared, began)
        return running

    def _start_prefetch(self, at: Place) -> Running | None:
        try:
            running = self.asking.launch(at, self.asking.prepare(at), time.monotonic(), prefetch=True)
        except (NoSuggestion, DraftlineError):
            return None
        self.statistics.count("prefetches")
        return running

    def _was_read(self, result: GenerationResult) -> None:
        self.statistics.count("prefetches")
        self.statistics.generated(result, prefetch=True)

    def _ended(self, running: Running) -> None:
        """A generation is over: keep what it said, whoever may want it."""
        uri = running.place.snapshot.uri
        self.prefetch.ended(running)
        mine = self._running.get(uri) is running
        if mine:
            del self._running[uri]
        if running.result is not None:
            self.statistics.generated(running.result, prefetch=running.prefetch)
        prefetched = running.prefetch and not running.cancelled
        wanted = self._store.version(uri) is not None and (mine or prefetched)
        half = running.entry
        if running.suggestion is not None and wanted:
            self._known.remember(running, running.suggestion)
        at = self._answered.get(uri)
        if mine and at is not None and half is not None and running.entry is not None:
            self._tell_growth(at, half, running.entry)
        if mine and at is not None and running.result is not None and not was_stopped(running.result):
            self.prefetch.later(lambda: self._after(at))

    def _tell_growth(self, at: Place, half: Shown, whole: Shown) -> None:
        """``half`` was answered at ``at``, unless the text is another by now; ``whole`` is the end of it."""
        uri, version = at.snapshot.uri, at.snapshot.version
        present = self._store.version(uri) == version and uri not in self._tickets
        if present and len(whole.text) > len(half.text) and self._known.find(at) is not None:
            self.on_grown(uri, version)

    def _joinable(self, wanted: Place) -> Running | None:
        """What the engine writes already, if ``wanted`` is on its way; otherwise that is stopped."""
        uri = wanted.snapshot.uri
        running = self._running.get(uri)
        context = self.asking.context_version(uri)
        for candidate in (running, self.prefetch.running):
            if candidate is None or not candidate.joinable or candidate.engine is not self.asking.engine():
                continue
            typed = candidate.typed(wanted) if candidate.prepared.context == context else None
            if typed is None or not candidate.agrees(typed):
                continue
            if candidate is not running:
                self._stop(uri)
                self.prefetch.take()
                self._running[uri] = candidate
            candidate.keep()
            if candidate.entry is not None:  # its first lines were answered; there may be more by now
                self._known.remember_lines(candidate)
            return candidate
        self._stop(uri)
        return None

    def _overtake(self, uri: str) -> None:
        ticket = self._tickets.pop(uri, None)
        if ticket is not None:
            ticket.supersede()

    def _stop(self, uri: str) -> None:
        running = self._running.pop(uri, None)
        if running is not None:
            running.cancel()

    def _make_way(self, uri: str) -> None:
        """Stop what nobody waits for."""
        self.prefetch.cancel()
        for other, running in list(self._running.items()):
            if other != uri and not running.followed:
                self._stop(other)

    def _after(self, at: Place) -> Place | None:
        """The place to prefetch for: after the acceptance of what is shown at ``at``."""
        uri = at.snapshot.uri
        current = self._answered.get(uri) is at and self._store.version(uri) == at.snapshot.version
        found = self._known.find(at) if current else None
        return found and self._unless_known(after_acceptance(at, placed(at, found[1], found[0])))

    def _unless_known(self, at: Place) -> Place | None:
        # The document may have been edited or closed since.
        old = self._store.version(at.snapshot.uri) != at.snapshot.version
        busy = self._tickets or self._running
        return None if old or busy or self._known.find(at) is not None else at
