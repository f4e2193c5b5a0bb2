"""Draftline's edits: the model's own text, and what the language server makes of it as it streams."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal, cast

from bench.peers.base import Decoder, Prompt
from bench.quality.answers import Candidate, Given
from bench.quality.datasets import EditTask
from bench.quality.edit_prompt import cut_at_fence, edit_limit, edit_prompt, prompt_text, selection_of
from inference.api import Chunk, Draft, FinishReason, StopRules, TextCodec, TextEngine
from inference.drafting.planner import Planner
from inference.precision import precision_of
from inference.runtime import Runtime
from lsp_server.inline_edit.reasons import NoEditError
from lsp_server.inline_edit.service import TRUNCATED, EditOptions, prepare_edit

Reading = Literal["raw", "parsed"]
RAW: Reading = "raw"
PARSED: Reading = "parsed"

# Of the peers' ways to decode (`Decoder.modes`): without drafts, and those to draft that
# ``bench speculation --sets edit`` found fast. The other n-gram ways draft what "ngram-simple" does.
_FAST_FOR_EDITS = frozenset({"plain", "ngram-simple", "ngram-mod", "ngram-cache", "prompt-lookup"})


def variant_of(reading: str, mode: str) -> str:
    """The name of a way to an edit in the results."""
    return f"{reading}, {mode}"


def edit_candidates(
    runtime: Runtime, modes: tuple[Draft, ...], readings: tuple[Reading, ...] = (PARSED, RAW)
) -> list[Candidate[EditTask]]:
    """Draftline in the given readings and each way to draft; what users get comes first, so that reports
    compare everything with it.

    "raw": the prompt is decoded to an end token or the length limit, with no hint where to copy from, and cut
    at the closing fence. "parsed": the server's own request, its answer read, laid out and compared with the
    code while it streams, and the hunks applied; no edit leaves the code as it is.
    """
    return [_candidate(runtime, mode, reading) for mode in modes for reading in readings]


def peer_candidates(decoder: Decoder, codec: TextCodec) -> list[Candidate[EditTask]]:
    """A started peer with the same prompt, read as "raw" is: decoded its plain way, and in those of its ways
    to draft that are fast for edits."""
    modes = [mode for mode in decoder.modes if mode in _FAST_FOR_EDITS] or list(decoder.modes[:1])
    return [_peer_candidate(decoder, mode, codec) for mode in modes]


def _peer_candidate(decoder: Decoder, mode: str, codec: TextCodec) -> Candidate[EditTask]:
    def answer(task: EditTask) -> Given:
        prompt = edit_prompt(codec, task.instruction, task.code)
        request = Prompt(prompt.ids, prompt_text(codec, prompt.ids))
        decoded = decoder.decode(request, mode, edit_limit(prompt), prompt.stop_ids)
        return Given(
            cut_at_fence(decoded.text, prompt.fence),
            decoded.first_ms + decoded.decode_ms,
            decoded.tokens,
            decoded.finish_reason,
            len(prompt.ids),
            forwards=decoded.forwards,
            decode_ms=decoded.decode_ms,
        )

    numerics = str(decoder.describe().get("numerics", ""))
    return Candidate(decoder.name, numerics, variant_of(RAW, mode), answer)


def edit_room(codec: TextCodec, tasks: list[EditTask]) -> int:
    """Tokens of prompt and answer together that the longest of some edits needs."""
    prompts = (edit_prompt(codec, task.instruction, task.code) for task in tasks)
    return max((len(prompt.ids) + edit_limit(prompt) for prompt in prompts), default=0)


def _candidate(runtime: Runtime, mode: Draft, reading: Reading) -> Candidate[EditTask]:
    # A process that runs in one mode only has one planner, which learns from all answers.
    planner = Planner()

    def answer(task: EditTask) -> Given:
        runtime.generator.planner = planner
        runtime.generator.recycling.clear()
        return _raw(runtime, mode, task) if reading == RAW else _parsed(runtime, mode, task)

    return Candidate("draftline", str(precision_of(runtime.options)), variant_of(reading, mode), answer)


def _raw(runtime: Runtime, mode: Draft, task: EditTask) -> Given:
    prepared = prepare_edit(selection_of(task.code), task.instruction, _as_engine(runtime), EditOptions())
    request = replace(
        prepared.request,
        stops=StopRules(token_ids=prepared.prompt.stop_ids),
        source_hint=None,
        draft=mode,
        use_cache=False,
    )
    began = time.perf_counter()
    outcome = runtime.run(request, lambda chunk: None, lambda: None)
    ended = time.perf_counter()
    return Given(
        cut_at_fence(outcome.text, prepared.prompt.fence),
        (ended - began) * 1000,
        len(outcome.token_ids),
        outcome.reason.value,
        len(request.prompt),
        forwards=outcome.forwards,
        decode_ms=(ended - outcome.first_token) * 1000,
    )


def _parsed(runtime: Runtime, mode: Draft, task: EditTask) -> Given:
    prepared = prepare_edit(selection_of(task.code), task.instruction, _as_engine(runtime), EditOptions())
    rewrite = prepared.rewrite
    first_hunk: list[float] = []
    forwards = 0
    differs_at: int | None = None  # forward
    shown_at: int | None = None

    def emit(chunk: Chunk) -> None:
        nonlocal differs_at, shown_at
        rewrite.feed(chunk.text)
        if differs_at is None and rewrite.differs:
            differs_at = forwards
        progress = rewrite.progress
        if shown_at is None and (progress.hunks or progress.open):
            shown_at = forwards
        if not first_hunk and progress.hunks:
            first_hunk.append(time.perf_counter())

    def interrupted() -> FinishReason | None:
        nonlocal forwards
        forwards += 1  # asked before each
        return FinishReason.CANCELLED if rewrite.done else None

    began = time.perf_counter()
    outcome = runtime.run(replace(prepared.request, draft=mode, use_cache=False), emit, interrupted)
    reason = outcome.reason.value
    text = task.code
    try:
        rewritten = rewrite.finish(outcome.reason in TRUNCATED)
        text = "\n".join(rewritten.lines)
        reason = ", ".join([reason, *(flag.value for flag in rewritten.flags)])
        first_hunk.append(time.perf_counter())  # the last one is certain only at the end
    except NoEditError as none:
        reason = none.reason
    ended = time.perf_counter()
    return Given(
        text,
        (ended - began) * 1000,
        len(outcome.token_ids),
        reason,
        len(prepared.request.prompt),
        forwards=outcome.forwards,
        decode_ms=(ended - outcome.first_token) * 1000,
        first_hunk_ms=(first_hunk[0] - began) * 1000 if first_hunk else None,
        shown_behind=None if shown_at is None or differs_at is None else shown_at - differs_at,
    )


def _as_engine(runtime: Runtime) -> TextEngine:
    """As much of an engine as the preparation of an edit asks for."""
    facts: Any = SimpleNamespace(tokenizer=runtime.tokenizer, context=runtime.context)
    return cast(TextEngine, facts)
