"""transformers' ``generate`` as a decoder, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer

from bench.peers.base import Decoded, Decoder, PeerFailed, Prompt, Usage
from bench.peers.line_worker import LineWorker
from inference.weights.source import open_source

Dtype = Literal["fp32", "bf16"]

PLAIN = "plain"
PROMPT_LOOKUP = "prompt-lookup"
LOOKUP_TOKENS = 10  # as the library's documentation and llama-cpp-python have it

_LOAD_SECONDS = 900.0
_ANSWER_SECONDS = 900.0


class TransformersDecoder:
    """Implements ``Decoder``.

    The process gets its own memory, and its threads sleep while others decode: they wait for a line.
    ``model`` is a directory in transformers layout, or a GGUF file, which is turned into ``dtype``.
    """

    modes = (PLAIN, PROMPT_LOOKUP)

    def __init__(self, name: str, model: Path, threads: int, dtype: Dtype = "fp32") -> None:
        self._name, self._model, self._threads, self._dtype = name, model, threads, dtype
        self._worker: LineWorker | None = None
        self._facts: dict[str, Any] = {}
        self._tokenizer: Tokenizer | None = None

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    def start(self) -> None:
        """Start the process and load the model. Idempotent.

        Raises:
            PeerFailed: the library cannot load it, or the process ends; with its words.
        """
        if self._worker is not None:
            return
        environment = {"OMP_NUM_THREADS": str(self._threads), "HF_HUB_OFFLINE": "1"}
        self._worker = LineWorker(self._name, "bench.peers.transformers_worker", environment)
        order = {"path": str(self._model.resolve()), "dtype": self._dtype, "threads": self._threads}
        try:
            self._facts = self._ask(order, _LOAD_SECONDS)["facts"]
        except BaseException:
            self.stop()
            raise

    def describe(self) -> dict[str, Any]:
        """Versions, model and settings."""
        return {
            "model": self._model.name,
            "numerics": self._dtype,
            **self._facts,
            "settings": {"do_sample": False, "prompt_lookup_num_tokens": LOOKUP_TOKENS},
        }

    def decode(
        self,
        prompt: Prompt,
        mode: str,
        max_tokens: int,
        stop_ids: frozenset[int],
        stops: tuple[str, ...] = (),
    ) -> Decoded:
        """Continue a prompt to one of ``stop_ids`` or ``max_tokens``.

        Raises:
            PeerFailed: it does not answer, or there are ``stops``: the process has no tokenizer.
        """
        if stops:
            raise PeerFailed(f"{self._name} cannot stop at strings, only at tokens")
        if mode not in self.modes:
            raise ValueError(f"{mode!r} is no mode of {self._name}")
        order = {
            "ids": list(prompt.ids),
            "stop_ids": sorted(stop_ids),
            "max_tokens": max_tokens,
            "lookup_tokens": LOOKUP_TOKENS if mode == PROMPT_LOOKUP else 0,
        }
        answer = self._ask(order, _ANSWER_SECONDS)
        ids: list[int] = answer["ids"]
        return Decoded(
            text=self._text([id for id in ids if id not in stop_ids]),
            token_ids=tuple(ids),
            tokens=len(ids),
            prompt_tokens=len(prompt.ids),
            cached_tokens=0,
            prompt_ms=answer["first_ms"],
            first_ms=answer["first_ms"],
            decode_ms=answer["decode_ms"],
            drafted=answer["drafted"],
            accepted=answer["accepted"],
            forwards=answer["forwards"],
            finish_reason=answer["finish_reason"],
        )

    def usage(self) -> Usage:
        """Of the process."""
        return self._worker.usage() if self._worker is not None else Usage(None, None, None)

    def stop(self) -> None:
        """End the process. Idempotent."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def _ask(self, order: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._worker is None:
            raise PeerFailed(f"{self._name} is not started")
        return self._worker.ask(order, seconds)

    def _text(self, ids: list[int]) -> str:
        # Here and not in the process, whose memory is that of the model.
        if self._tokenizer is None:
            self._tokenizer = Tokenizer.from_buffer(open_source(self._model).tokenizer_json())
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text


_: type[Decoder] = TransformersDecoder
