"""One row after the other, each in a process of its own, on the same text, tasks and places."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from bench.numerics.orders import GAP_VARIANT, converter
from bench.numerics.rows import NotInThisVersion, config_for
from bench.peers.base import PeerFailed, Usage
from bench.peers.line_worker import LineWorker
from bench.places import BenchPlace, source_files
from bench.quality.datasets import InfillTask
from bench.quality.judge import judge
from bench.records import Answer, Layout
from inference.api import EngineConfig
from lsp_server.completion.options import CompletionOptions

ROWS_OF_PASSES = (1, 8, 16)
_LOAD_SECONDS = 1800.0  # the weights may have to be converted first
_SECONDS = 900.0  # for one order

# Two files are enough for thousands of tokens; text of several kinds says more.
_EXCERPT = 6000  # characters of each file


@dataclass(frozen=True)
class Extent:
    """What is measured of each row.

    Attributes:
        text: of it, ``text_tokens`` are predicted.
        gaps: tasks by the name of their set.
        places: for greedy answers of ``answer_tokens``.
        repeats: of each forward pass.
        tests: run the tasks' own tests on what a model wrote.
    """

    text: str
    text_tokens: int
    gaps: Mapping[str, Sequence[InfillTask]]
    places: Sequence[BenchPlace]
    answer_tokens: int
    repeats: int
    tests: bool

    @property
    def steps(self) -> int:
        """Of a row: loading, perplexity, passes, and one for each answer."""
        return 3 + sum(map(len, self.gaps.values())) + len(self.places)


class Worker(Protocol):
    """A process that can be asked, see `LineWorker`."""

    def ask(self, order: Mapping[str, Any], seconds: float) -> dict[str, Any]: ...

    def usage(self) -> Usage: ...

    def end(self) -> None: ...


def text_of(repo: Path, tokens: int, seed: int) -> str:
    """Pieces of files, with more characters than so many tokens have."""
    files = source_files(repo)
    random.Random(seed).shuffle(files)
    text = ""
    for path in files:
        if len(text) > 8 * tokens:
            break
        text += path.read_text(encoding="utf-8", errors="replace")[:_EXCERPT]
    return text


def measure(
    name: str,
    settings: Mapping[str, Any],
    base: EngineConfig,
    options: CompletionOptions,
    extent: Extent,
    advance: Callable[[], None],
    start: Callable[[str], Worker] | None = None,
) -> Iterator[Answer | Layout]:
    """The answers to the gaps as they come, and at last the row, which says what failed if something did."""
    layout = Layout(name=name, settings=dict(settings))
    try:
        config = config_for(base, settings)
    except NotInThisVersion as error:
        yield replace(layout, error=str(error))
        return
    worker: Worker | None = None
    stopped = False
    try:
        worker = (start or _start)(name)
        order = {
            "do": "load",
            "config": converter.unstructure(config),
            "options": converter.unstructure(replace(options, use_cache=False, draft=None)),
        }
        layout = replace(layout, **_known(worker.ask(order, _LOAD_SECONDS)))
        advance()
        order = {"do": "passes", "rows": list(ROWS_OF_PASSES), "repeats": extent.repeats}
        layout = replace(layout, passes=worker.ask(order, _SECONDS)["passes"])
        advance()
        for place in extent.places:
            order = {"do": "greedy", "place": _place(place), "tokens": extent.answer_tokens}
            layout.answers.append(worker.ask(order, _SECONDS)["ids"])
            advance()
        for set_name, tasks in extent.gaps.items():
            for task in tasks:
                given = worker.ask({"do": "gap", "task": converter.unstructure(task)}, _SECONDS)
                yield _judged(set_name, task, name, given, extent.tests)
                advance()
        # Now, because the logits of a whole text take hundreds of MB that no request ever does.
        layout = _with_memory(layout, worker)
        found = worker.ask({"do": "perplexity", "text": extent.text, "tokens": extent.text_tokens}, _SECONDS)
        layout = replace(layout, nll=found["nll"], tokens=found["tokens"])
        advance()
    except PeerFailed as error:
        layout = replace(layout, error=str(error))
    except KeyboardInterrupt:
        stopped, layout = True, replace(layout, error="stopped")
    finally:
        if worker is not None:
            if layout.private_bytes is None:
                layout = _with_memory(layout, worker)
            worker.end()
    yield layout
    if stopped:
        raise KeyboardInterrupt


def _start(name: str) -> LineWorker:
    return LineWorker(f"the process of {name}", "bench.numerics.worker")


def _with_memory(layout: Layout, worker: Worker) -> Layout:
    usage = worker.usage()
    return replace(layout, private_bytes=usage.private_bytes, mapped_bytes=usage.mapped_bytes)


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a record has fields for."""
    return {
        name: facts[name]
        for name in ("kernel", "bit_exact", "file_bytes", "weight_bytes", "kv_token_bytes")
        if name in facts
    }


def _place(place: BenchPlace) -> dict[str, Any]:
    return {
        "path": place.path,
        "language": place.snapshot.language_id,
        "text": "".join(place.snapshot.lines),
        "line": place.cursor.line,
        "column": place.cursor.column,
    }


def _judged(set_name: str, task: InfillTask, numerics: str, given: Mapping[str, Any], tests: bool) -> Answer:
    judgement = judge(task, given["text"], tests=tests)
    return Answer(
        system="draftline",
        set=set_name,
        item=task.id,
        variant=GAP_VARIANT,
        numerics=numerics,
        text=given["text"],
        exact=judgement.exact,
        similarity=judgement.similarity,
        passed=judgement.passed,
        failure=judgement.failure,
        valid=judgement.valid,
        tokens=given["tokens"],
        ms=given["ms"],
        finish_reason=given["finish_reason"],
    )
