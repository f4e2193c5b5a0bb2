"""After a change of kernels or threads: is an answer that of a process which never had others?

Run as a program it is that process: ``python -m bench.exactness.restart``, JSON lines on stdin and stdout.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cattrs.preconf.json import make_converter

from bench.exactness.compare import ExactnessBench
from bench.peers.line_worker import LineWorker, serve
from bench.records import Restarted
from inference.api import EngineConfig, GenerationRequest, Kernels

CHANGES = 3  # that `after_changes` compares
_SECONDS = 600.0  # to load and to answer
_converter = make_converter()


class Answered(NamedTuple):
    """What is compared of an answer."""

    token_ids: tuple[int, ...]
    logits_sha256: str


Fresh = Callable[[EngineConfig, Sequence[GenerationRequest]], list[Answered]]


def plain(
    bench: ExactnessBench, requests: Sequence[GenerationRequest], threads: int | None = None
) -> list[Answered]:
    """Plain answers of a loaded model."""
    return [Answered(outcome.token_ids, outcome.logits_sha256) for outcome in bench.plain(requests, threads)]


def fresh(config: EngineConfig, requests: Sequence[GenerationRequest]) -> list[Answered]:
    """The answers of a new process.

    Raises:
        PeerFailed: it did not answer.
    """
    worker = LineWorker("the fresh process", "bench.exactness.restart")
    try:
        order = {
            "config": _converter.unstructure(config),
            "requests": [_converter.unstructure(request) for request in requests],
        }
        answers = worker.ask(order, _SECONDS)["answers"]
        return [Answered(tuple(ids), digest) for ids, digest in answers]
    finally:
        worker.end()


def after_changes(
    bench: ExactnessBench, requests: Sequence[GenerationRequest], ask: Fresh = fresh
) -> Iterator[Restarted]:
    """Changes the number of threads, then the kernels and back, and compares with fresh processes.

    Args:
        bench: has answered until now; it is stopped, since two models at once may not fit.

    Raises:
        PeerFailed: a fresh process does not answer.
        DraftlineError: the model cannot be loaded with other kernels.
    """
    config = bench.runtime.options
    first = plain(bench, requests)
    single = plain(bench, requests, threads=1)
    bench.stop()
    yield _compared("threads to 1", single, ask(replace(config, threads=1), requests))
    kernels: Kernels = "torch" if config.kernels == "auto" else "auto"
    other = replace(config, kernels=kernels)
    second = _after_loading(other, requests)
    yield _compared(f"kernels from {config.kernels} to {kernels}", second, ask(other, requests))
    third = _after_loading(config, requests)
    yield _compared(f"kernels from {kernels} back to {config.kernels}", third, first)


def _after_loading(config: EngineConfig, requests: Sequence[GenerationRequest]) -> list[Answered]:
    """Of this process, which had other kernels before."""
    bench = ExactnessBench(config)
    try:
        return plain(bench, requests)
    finally:
        bench.stop()


def _compared(change: str, here: Sequence[Answered], there: Sequence[Answered]) -> Restarted:
    same = sum(one == other for one, other in zip(here, there, strict=True))
    return Restarted(change=change, answers=len(here), identical=same)


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    bench = ExactnessBench(_converter.structure(order["config"], EngineConfig))
    requests = [_converter.structure(request, GenerationRequest) for request in order["requests"]]
    return {"answers": plain(bench, requests)}


def main() -> int:
    """Answer until stdin ends."""
    serve(_answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
