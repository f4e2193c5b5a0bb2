"""Draftline's own answers to gaps: the functions of the language server, and parts of them left out."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from bench.quality.answers import Candidate, Given
from bench.quality.datasets import InfillTask
from bench.quality.recordings import recorded, replay, without_stops
from bench.quality.repo_gaps import RepoContext, RepoTask
from bench.quality.summary import WITHOUT
from inference.api import GenerationResult, Timings
from inference.errors import DraftlineError
from inference.generation import Outcome
from inference.precision import precision_of
from inference.runtime import Runtime
from lsp_server.completion.filters import FILTERS as ALL_FILTERS
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import Prepared, finish, prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.completion.reasons import NoSuggestion
from lsp_server.completion.stop_policy import NAMES as STOP_POLICY
from lsp_server.context.related import NOTHING, SOURCES
from lsp_server.documents.line_index import split_lines
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.order import PromptOrder

Order = Literal[
    "spm",
    "spm-unhealed",
    "line-in-middle",
    "line-in-middle-unhealed",
    "lines-in-middle",
    "psm",
    "psm-unhealed",
]
Filters = Literal["all", "none", "no-stops", "oracle"]

# Everything that ``disabledFilters`` may name.
ABLATED_NAMES = ("suffix", "max-lines", "scope", "shape", *STOP_POLICY, *ALL_FILTERS)

# The same for all tasks, so that they share one KV slot.
_URI = "quality.py"
# What stands behind the middle marker in "lines-in-middle" is between none and twice as many lines.
TYPED_LINES = 4


@dataclass(frozen=True)
class Variant:
    """What is changed about the server's way to an answer.

    Attributes:
        order: of the prompt (`PromptOrder`), with token healing, as the server, or without. With
            "lines-in-middle" the last `TYPED_LINES` lines before the cursor's were typed since the anchor.
        filters: "all": as the server. "none": the engine's text with its stop rules, without the filters.
            "no-stops": the text up to an end token or the length limit. "oracle": that text cut by
            `oracle_cut`, the ceiling for all stop rules.
        sources: of context beyond the window, as the setting ``contextSources``; for gaps among other files.
        left_out: with "all": the name of a filter or stop rule that is off. All of these are answered from
            one generation without stop rules, so their times say nothing.
    """

    order: Order
    filters: Filters
    sources: frozenset[str] = frozenset()
    left_out: str = ""

    def __str__(self) -> str:
        if self.sources:
            return "+all" if self.sources == _ALL else "+" + "+".join(sorted(self.sources))
        return f"{self.order}/{WITHOUT}{self.left_out}" if self.left_out else f"{self.order}/{self.filters}"

    @property
    def stopped(self) -> bool:
        """Whether the stop rules are on."""
        return self.filters in ("all", "none") and not self.left_out


ORDERS: tuple[Order, ...] = get_args(Order)
FILTERS: tuple[Filters, ...] = ("all", "none", "no-stops", "oracle")
# Nothing was accepted before a gap, so that source gives nothing.
_ALL = frozenset(SOURCES) - {"accepted"}
_SOURCES = ({"scope"}, {"imports"}, {"scope", "imports"}, {"definitions"}, {"recent"}, {"tabs"}, _ALL)
# The server's way to an answer with more context.
CONTEXT_VARIANTS = {
    str(variant): variant for variant in (Variant("spm", "all", frozenset(sources)) for sources in _SOURCES)
}
VARIANTS = {str(variant): variant for variant in (Variant(o, f) for o in ORDERS for f in FILTERS)}
# The server's own order, with each filter and stop rule left out.
ABLATED = "spm/all"
_ABLATED = (Variant(ORDERS[0], "all", left_out=name) for name in ABLATED_NAMES)
ABLATIONS = {str(variant): variant for variant in _ABLATED}


class NoFillIn(DraftlineError):
    """The model cannot fill gaps."""

    code = "no-fim"


@dataclass(frozen=True)
class _Generated:
    prepared: Prepared
    outcome: Outcome
    result: GenerationResult
    ms: float


class DraftlineInfill:
    """Answers gaps with one loaded model, nothing cached from task to task.

    Variants that differ only in what is cut off a finished text share one generation and its time.
    """

    def __init__(self, runtime: Runtime, options: CompletionOptions) -> None:
        """Raises:
        NoFillIn: the vocabulary has no fill-in-the-middle tokens.
        """
        self._runtime = runtime
        self._options = replace(options, use_cache=False)
        self._builder = PromptBuilder(runtime.tokenizer, runtime.context)
        if self._builder.format is None:
            raise NoFillIn(
                f"{runtime.prepared.source} has no fill-in-the-middle tokens, so it cannot fill gaps.",
                "Choose a code model, or only the edits with --sets edit.",
            )
        self._task: InfillTask | None = None
        self._generated: dict[tuple[Order, bool, frozenset[str]], _Generated] = {}
        self._context = RepoContext()

    def candidate(self, variant: Variant) -> Candidate[InfillTask]:
        """This model in one variant."""
        numerics = str(precision_of(self._runtime.options))
        return Candidate("draftline", numerics, str(variant), lambda task: self._answer(task, variant))

    def _answer(self, task: InfillTask, variant: Variant) -> Given:
        generated = self._generation(task, variant)
        prepared, result = generated.prepared, generated.result
        if variant.left_out:
            prepared = self._prepare(task, variant)
            recording = recorded(self._runtime.tokenizer, prepared.request, generated.outcome)
            result = replay(recording, prepared.request)
        text, reason, ms = result.text, result.finish_reason.value, generated.ms
        if variant.filters == "all":
            start = time.perf_counter()
            try:
                text = finish(prepared, result).text
            except NoSuggestion as none:
                text, reason = "", getattr(none.reason, "value", none.reason)
            ms += (time.perf_counter() - start) * 1000
        elif variant.filters == "oracle":
            text = oracle_cut(text, task.middle)
        return Given(text, ms, len(result.token_ids), reason, result.prompt_tokens)

    def _generation(self, task: InfillTask, variant: Variant) -> _Generated:
        if task is not self._task:
            self._task = task
            self._generated.clear()
        key = (variant.order, variant.stopped, variant.sources)
        if key not in self._generated:
            self._generated[key] = self._generate(task, variant)
        return self._generated[key]

    def _set_anchor(self, snapshot: Snapshot, lines: list[str], options: CompletionOptions) -> None:
        """Build the prompt of the moment before the last lines were typed."""
        line = max(0, len(lines) - 1 - TYPED_LINES)
        before = (*snapshot.lines[:line], *snapshot.lines[len(lines) - 1 :])
        self._builder.build(replace(snapshot, lines=before), Point(line, 0), options)

    def _prepare(self, task: InfillTask, variant: Variant) -> Prepared:
        lines = split_lines(task.prompt)
        cursor = Point(len(lines) - 1, len(lines[-1]))
        language = task.language if isinstance(task, RepoTask) else "python"
        # An anchor belongs to one text.
        snapshot = Snapshot.of(task.prompt + task.suffix, f"{_URI}#{task.id}", language_id=language)
        options = replace(
            self._options,
            order=cast(PromptOrder, variant.order.removesuffix("-unhealed")),
            heal=not variant.order.endswith("unhealed"),
            context_sources=variant.sources,
            filters_off=self._options.filters_off | ({variant.left_out} - {""}),
        )
        if options.order == "lines-in-middle":
            self._set_anchor(snapshot, lines, options)
        found = self._context.gather(task, options) if isinstance(task, RepoTask) else NOTHING
        prepared = prepare(snapshot, cursor, self._builder, options, None, found.files, found.prefix_lines)
        return replace(prepared, request=replace(prepared.request, document=_URI))

    def _generate(self, task: InfillTask, variant: Variant) -> _Generated:
        start = time.perf_counter()
        # What is left out decides about the end only, not about the tokens.
        prepared = self._prepare(task, replace(variant, left_out=""))
        request = prepared.request if variant.stopped else without_stops(prepared.request)
        # Another variant has answered the same task, and its choices would be this one's drafts.
        self._runtime.generator.recycling.clear()
        outcome = self._runtime.run(request, lambda chunk: None, lambda: None)
        ms = (time.perf_counter() - start) * 1000
        result = GenerationResult(
            text=outcome.text,
            token_ids=outcome.token_ids,
            finish_reason=outcome.reason,
            prompt_tokens=len(request.prompt),
            cached_tokens=outcome.cached_tokens,
            drafted=outcome.drafted,
            accepted=outcome.accepted,
            forwards=outcome.forwards,
            timings=Timings(total=ms),
        )
        return _Generated(prepared, outcome, result, ms)


def oracle_cut(raw: str, middle: str) -> str:
    """Where a stop rule that knew the canonical ``middle`` would end the unstopped text ``raw``.

    If ``raw`` begins with ``middle``, blanks at both ends aside, it ends with it. Otherwise it keeps as many
    lines as ``middle`` has. So no stop rule has more exact matches; an answer that passes the tests although
    it is another one may still be cut too early or too late.
    """
    start = len(raw) - len(raw.lstrip())
    core = middle.strip()
    if not raw.startswith(core, start):
        return "\n".join(raw.split("\n")[: middle.count("\n") + 1])
    end = start + len(core)
    for blank in middle[len(middle.rstrip()) :]:
        if not raw.startswith(blank, end):
            break
        end += 1
    return raw[:end]
