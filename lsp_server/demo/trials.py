"""The measurements of the demo. They use the server's own pipeline."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from inference.api import Draft, GenerationResult, TextEngine
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import Suggestion, finish, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion, message_for
from lsp_server.completion.suggestions import Shown, SuggestionCache
from lsp_server.demo.places import Place


@dataclass(frozen=True)
class Shot:
    """A suggestion at a place; None with the reason if there is none.

    ``result`` is what the engine did for it, None if it could not be asked.
    """

    place: Place
    suggestion: Suggestion | None
    reason: str
    prompt_tokens: int
    first_ms: float
    total_ms: float
    result: GenerationResult | None = None


@dataclass(frozen=True)
class Pace:
    """One way of decoding one answer. ``tokens`` and ``ms`` begin behind the first token, which
    comes from reading the prompt."""

    tokens: int
    forwards: int
    ms: float

    @property
    def tokens_per_s(self) -> float:
        """Decoding alone."""
        return 1000 * self.tokens / self.ms if self.ms > 0 else 0.0

    @property
    def tokens_per_forward(self) -> float:
        """1 without speculation."""
        return self.tokens / self.forwards if self.forwards else 0.0


@dataclass(frozen=True)
class Duel:
    """The same answer plain and with speculation; ``same`` compares all tokens and the text."""

    place: Place
    plain: Pace
    speculative: Pace
    same: bool


@dataclass(frozen=True)
class OneMoreKey:
    """A character typed after a suggestion, answered in three ways; milliseconds to first token.

    Attributes:
        typed_along_ms: None if the character is not the suggestion's next one; otherwise the time
            to answer from the suggestion that is already there, without the model.
        cold_ms: nothing of the prompt is known.
        warm_ms: the tokens before the key are in the cache.
        cached_tokens: how many of ``prompt_tokens`` they are.
    """

    place: Place
    key: str
    typed_along_ms: float | None
    cold_ms: float
    warm_ms: float
    prompt_tokens: int
    cached_tokens: int
    same: bool


class Trials:
    """Runs requests on a ready engine."""

    def __init__(self, engine: TextEngine, options: CompletionOptions) -> None:
        self._engine = engine
        self._options = options
        self._builder = PromptBuilder(engine.tokenizer, engine.context)

    def shoot(self, place: Place, draft: Draft) -> Shot:
        """What an editor would show at a place it opens now."""
        options = replace(self._options, draft=draft, use_cache=False)
        try:
            prepared = prepare(place.snapshot, place.cursor, self._builder, options)
        except NoSuggestion as none:
            return Shot(place, None, _words(none), 0, 0.0, 0.0)
        result = self._engine.submit(prepared.request).future.result()
        suggestion, reason = None, ""
        try:
            suggestion = finish(prepared, result)
        except NoSuggestion as none:
            reason = _words(none)
        timings = result.timings
        return Shot(place, suggestion, reason, result.prompt_tokens, timings.first, timings.total, result)

    def duel(self, shot: Shot) -> Duel:
        """Decode the answer of a shot again, plainly, and compare what came behind the first tokens.

        The shot itself is the speculative side: asked a second time, a drafter that remembers what the
        model chose would only repeat the answer.
        """
        speculative = shot.result
        assert speculative is not None
        plain = self._run(shot.place, draft="none", use_cache=True)
        same = plain.token_ids == speculative.token_ids and plain.text == speculative.text
        return Duel(shot.place, _pace(plain), _pace(speculative), same)

    def one_more_key(self, shot: Shot) -> OneMoreKey:
        """Type the next character of a suggestion."""
        assert shot.suggestion is not None
        place, text = shot.place, shot.suggestion.text
        # A line end would come with the editor's own indentation.
        key = next((character for character in text if not character.isspace()), "x")
        along = text.startswith(key)
        typed = place.typed(key)
        typed_along_ms = _answer_from(shot, typed) if along else None
        # The document as it was before the key is what an editor leaves in the cache.
        self._run(place, use_cache=True)
        warm = self._run(typed, use_cache=True)
        cold = self._run(typed, use_cache=False)
        return OneMoreKey(
            place,
            key,
            typed_along_ms,
            cold.timings.first,
            warm.timings.first,
            warm.prompt_tokens,
            warm.cached_tokens,
            warm.token_ids == cold.token_ids,
        )

    def _run(self, place: Place, *, use_cache: bool, draft: Draft | None = None) -> GenerationResult:
        options = replace(self._options, draft=draft, use_cache=use_cache)
        prepared = prepare(place.snapshot, place.cursor, self._builder, options)
        return self._engine.submit(prepared.request).future.result()


def _answer_from(shot: Shot, typed: Place) -> float | None:
    assert shot.suggestion is not None
    cache = SuggestionCache()
    cache.add(Shown(shot.place.snapshot, shot.place.cursor, shot.suggestion.text))
    start = time.perf_counter()
    rest = cache.rest(typed.snapshot, typed.cursor)
    return None if rest is None else (time.perf_counter() - start) * 1000


def _pace(result: GenerationResult) -> Pace:
    timings = result.timings
    return Pace(max(0, len(result.token_ids) - 1), result.forwards, timings.total - timings.first)


def _words(none: NoSuggestion) -> str:
    reason = getattr(none.reason, "value", none.reason)
    return f"{reason}: {none.message or message_for(reason)}"
