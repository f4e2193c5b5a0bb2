"""The prompts of the exactness bench: several kinds, most of them short, some as long as the context."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.exactness.stress import STRESSES
from bench.exactness.variants import LONG
from bench.places import BenchPlace, place_in, source_files
from bench.quality.datasets import EditTask
from bench.quality.edit_prompt import edit_prompt
from inference.api import GenerationRequest, StopRules, TextCodec
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion
from lsp_server.documents.text import Point

# How many of 100 prompts are of each kind: "place" is a completion in a real file, "edit" code to be
# rewritten on request, "text" a file that goes on, "random" any token ids; for the others see stress.py.
SHARES = {"place": 46, "edit": 10, "text": 14, "repeats": 10, "unicode": 7, "whitespace": 6, "random": 7}

# Bounds of the lengths in tokens, and how many of 100 prompts lie between them, evenly on a logarithmic
# scale. The last bound is the longest prompt that is asked for.
SHORTEST, SHORT, MIDDLE = 24, 512, 2048
_SHARES_OF_LENGTHS = (85, 10, 4, 1)

# Kinds in which drafts are long: their answers have room for the longest draft, and more than once.
LONG_DRAFTS = frozenset({"repeats", "edit"})
TIMES_LONGER = 2

# No text has more characters for a token, on average.
_CHARS_PER_TOKEN = 5
# Draws of a place until its prompt is about as long as it should be.
_TRIES = 8


@dataclass(frozen=True)
class ExactPrompt:
    """One prompt.

    Attributes:
        set: its kind.
        source: where it comes from: a place in a file, the id of a task; "" if it is made up.
        earlier: the requests of the keys before it.
    """

    set: str
    source: str
    request: GenerationRequest
    earlier: tuple[GenerationRequest, ...]


@dataclass(frozen=True)
class Sources:
    """Attributes:
    repo: the folder of the source files.
    tasks: edits; none leaves that kind out.
    """

    repo: Path
    tasks: Sequence[EditTask]
    seed: int


class PromptSource:
    """Makes the prompts for one vocabulary; the same ones for the same files and seed."""

    def __init__(
        self,
        codec: TextCodec,
        context: int,
        sources: Sources,
        options: CompletionOptions,
        tokens: int,
        longest: int,
    ) -> None:
        """``tokens`` are decoded for most prompts; ``longest`` is the longest prompt that is asked for."""
        self._codec = codec
        self._tokens = tokens
        self._longest = min(longest, context - TIMES_LONGER * tokens)
        self._sources = sources
        self._options = replace(options, max_new_tokens=tokens, digest_logits=True)
        self._builder = PromptBuilder(codec, context)
        self._generator = random.Random(sources.seed)
        self._files = source_files(sources.repo)
        self._ends = codec.end_ids | codec.special_ids
        self._names = 0

    @property
    def shares(self) -> dict[str, int]:
        """Of the kinds that this vocabulary and these sources have."""
        shares = dict(SHARES)
        if self._builder.format is None or not self._files:
            del shares["place"]
        if not self._files:
            del shares["text"]
        if not self._sources.tasks or not self._edits():
            del shares["edit"]
        return shares

    def prompts(self, count: int) -> Iterator[ExactPrompt]:
        """``count`` prompts in random order, so that a stopped run has seen all kinds."""
        kinds = _apportioned(self.shares, count)
        lengths = self._lengths(count)
        self._generator.shuffle(kinds)
        self._generator.shuffle(lengths)
        edits = self._edits() if "edit" in kinds else []
        self._generator.shuffle(edits)
        for number, (kind, length) in enumerate(zip(kinds, lengths, strict=True)):
            if kind == "edit":
                source, ids = edits[number % len(edits)]
                yield self._raw(kind, source, ids)
            elif kind == "place":
                yield self._place(length)
            elif kind == "text":
                yield self._text(length)
            elif kind == "random":
                yield self._raw(kind, "", self._random_ids(length))
            else:
                text = STRESSES[kind](self._generator, length * _CHARS_PER_TOKEN)
                yield self._raw(kind, "", self._codec.encode(text)[:length])

    def _lengths(self, count: int) -> list[int]:
        """Wanted lengths in tokens; the longest that are wanted at all is among them."""
        bounds = [min(bound, self._longest) for bound in (SHORTEST, SHORT, MIDDLE, self._longest // 2)]
        bounds = [*sorted(bounds), self._longest]
        groups = _apportioned(dict(enumerate(_SHARES_OF_LENGTHS)), count)
        lengths = []
        for group in groups:
            low, high = math.log(bounds[group]), math.log(bounds[group + 1])
            lengths.append(round(math.exp(self._generator.uniform(low, high))))
        lengths[lengths.index(max(lengths))] = self._longest
        return lengths

    def _place(self, length: int) -> ExactPrompt:
        best: ExactPrompt | None = None
        # A long prompt needs a long file, and a place far down in it.
        sizes = [path for path in self._files if path.stat().st_size >= length * 4]
        files = sizes or sorted(self._files, key=lambda path: path.stat().st_size)[-3:]
        for _ in range(_TRIES):
            place = place_in(self._generator.choice(files), self._sources.repo, self._generator)
            if place is None:
                continue
            try:
                found = self._prompt_at(place, length)
            except NoSuggestion:
                continue
            if best is None or len(found.request.prompt) > len(best.request.prompt):
                best = found
            if len(found.request.prompt) >= length / 2:
                break
        return best if best is not None else self._text(length)

    def _prompt_at(self, place: BenchPlace, length: int) -> ExactPrompt:
        document = self._name()
        requests = [self._request_at(place, back, length, document) for back in (0, 3, 1)]
        source = f"{place.path}:{place.cursor.line + 1}:{place.cursor.column + 1}"
        return ExactPrompt("place", source, requests[0], tuple(requests[1:]))

    def _request_at(self, place: BenchPlace, back: int, length: int, document: str) -> GenerationRequest:
        """The request at the cursor, or before the last ``back`` characters were typed."""
        cursor = Point(place.cursor.line, max(place.cursor.column - back, 0))
        lines = list(place.snapshot.lines)
        line = lines[cursor.line]
        lines[cursor.line] = line[: cursor.column] + line[place.cursor.column :]
        snapshot = replace(place.snapshot, lines=tuple(lines), uri=document)
        options = replace(self._options, prompt_tokens=max(length, SHORTEST))
        request = prepare(snapshot, cursor, self._builder, options).request
        # Stop rules would end most answers early; length is what gives drafts a chance to go wrong.
        return replace(request, stops=StopRules(token_ids=request.stops.token_ids))

    def _text(self, length: int) -> ExactPrompt:
        """The end of a piece of a file, without anything of what follows."""
        path = self._generator.choice(self._files)
        text = path.read_text(encoding="utf-8", errors="replace")
        chars = length * _CHARS_PER_TOKEN
        start = self._generator.randint(0, max(len(text) - chars, 0))
        ids = self._codec.encode(text[start : start + chars])[:length]
        return self._raw("text", str(path.relative_to(self._sources.repo)), ids)

    def _random_ids(self, length: int) -> list[int]:
        return self._generator.choices(range(self._codec.vocab_size), k=length)

    def _edits(self) -> list[tuple[str, tuple[int, ...]]]:
        """Ids of the tasks and of their prompts, those that fit."""
        prompts = [
            (task.id, edit_prompt(self._codec, task.instruction, task.code).ids)
            for task in self._sources.tasks
        ]
        return [(name, ids) for name, ids in prompts if len(ids) <= self._longest]

    def _raw(self, kind: str, source: str, ids: Sequence[int]) -> ExactPrompt:
        """A prompt that is continued as it is; the keys before it lack its last tokens."""
        ids = tuple(ids) or (next(iter(sorted(self._ends)), 0),)
        document = self._name()
        # Without a sense there is no end either, and what follows an end is decoded like anything else.
        ends: frozenset[int] = self._ends if kind in ("edit", "text") else frozenset()
        tokens = self._tokens * (TIMES_LONGER if kind in LONG_DRAFTS else 1)
        requests = [
            GenerationRequest(
                ids[: len(ids) - back],
                document=document,
                max_new_tokens=tokens,
                stops=StopRules(token_ids=ends),
                seed=self._options.seed,
                digest_logits=True,
            )
            for back in (0, 3, 1)
            if back < len(ids)
        ]
        return ExactPrompt(kind, source, requests[0], tuple(requests[1:]))

    def _name(self) -> str:
        self._names += 1
        return f"prompt-{self._names}"


def is_long(prompt: ExactPrompt) -> bool:
    """Whether reading it costs more than decoding its answer."""
    return len(prompt.request.prompt) > LONG


def _apportioned(shares: dict[str, int] | dict[int, int], count: int) -> list:  # type: ignore[type-arg]
    """``count`` names, each as often as its share says; those with the largest remainders get the rest."""
    total = sum(shares.values())
    exact = {name: count * share / total for name, share in shares.items()}
    counts = {name: int(value) for name, value in exact.items()}
    for name in sorted(exact, key=lambda name: counts[name] - exact[name])[: count - sum(counts.values())]:
        counts[name] += 1
    return [name for name, times in counts.items() for _ in range(times)]
