"""A loaded model with its caches: all that the worker thread needs to serve requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import psutil
import torch

from inference.api import Chunk, EngineConfig, FinishReason, GenerationRequest
from inference.cache.kv import KvSlot
from inference.cache.prefix import SlotPool
from inference.errors import NotEnoughMemory
from inference.generation import Generator, Outcome
from inference.hardware import Hardware, choose_device, probe
from inference.healing import Vocabulary
from inference.model.config import ModelConfig
from inference.model.decoder import Decoder
from inference.model.fused import compiler
from inference.model.loader import load_decoder
from inference.precision import precision_of
from inference.threads import ThreadGovernor
from inference.tokenizer import Tokenizer
from inference.weights.progress import Progress
from inference.weights.store import PreparedModel, prepare

T = TypeVar("T")

MIB = 1 << 20

# Beside weights and KV: activations of a prefill chunk, logits, the tokenizer, Python itself.
WORKING_MEMORY = 600 * MIB


@dataclass
class Runtime:
    """Lives in the worker thread; other threads only read its plain attributes.

    Attributes:
        context: tokens of one slot.
        load_ms: start-up breakdown by step, milliseconds.
    """

    options: EngineConfig
    prepared: PreparedModel
    config: ModelConfig
    hardware: Hardware
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    decoder: Decoder
    slots: SlotPool
    generator: Generator
    context: int
    load_ms: dict[str, float] = field(default_factory=dict)
    epoch: int = 0

    def run(
        self,
        request: GenerationRequest,
        emit: Callable[[Chunk], None],
        interrupted: Callable[[], FinishReason | None],
    ) -> Outcome:
        """Serve one request."""
        reuse = self.options.use_cache and request.use_cache
        draft = request.draft or self.options.draft
        with torch.inference_mode():
            slot, cached = self.slots.acquire(request.document, request.prompt, reuse=reuse, epoch=self.epoch)
            return self.generator.generate(request, slot, cached, draft, emit, interrupted)

    def close_document(self, document: str) -> None:
        """Forget what the caches hold of a document, and with the last one that has a slot what was learned
        from all."""
        self.slots.drop_document(document)
        if not self.slots.documents:
            self.generator.recycling.clear()
            self.vocabulary.beginning.cache_clear()


def load_runtime(options: EngineConfig, on_progress: Callable[[str, float | None], None]) -> Runtime:
    """Load everything. Call it in the thread that will run requests.

    Args:
        on_progress: told a sentence and a fraction 0 .. 1 (None: unknown). May raise to give up.

    Raises:
        DraftlineError: with the reason and the next step.
    """
    clock = _Clock()
    choose_device(options)  # before a conversion that nothing here could run
    precision = precision_of(options)
    clock.lap("device")
    prepared = prepare(
        options.model,
        options.numerics,
        allow_download=options.allow_download,
        progress=_StatusProgress(on_progress),
        mixed=options.mixed,
    )
    clock.lap("weights")
    config = ModelConfig.from_hf(prepared.config)

    def load_tokenizer() -> tuple[Tokenizer, Vocabulary]:
        tokenizer = Tokenizer(prepared.tokenizer, prepared.config.get("eos_token_ids", ()))
        return tokenizer, Vocabulary(tokenizer)

    words = _Background(load_tokenizer)
    # The first time this compiles, for about a second, while the weights are packed.
    functions = None
    if options.kernels == "auto" and "int8" in precision.layers(config.n_layers):
        functions = _Background(compiler.load)
    hardware = probe(options, config)
    clock.lap("probe")
    context, slots = plan_memory(options, config, prepared)
    with torch.inference_mode():
        decoder = load_decoder(
            prepared.weights,
            config,
            hardware,
            max_positions=context,
            on_fraction=lambda fraction: on_progress("Packing the weights.", fraction),
            library=None if functions is None else functions.result,
        )
        clock.lap("pack")
        loaded, vocabulary = words.result()
        clock.lap("tokenizer")
        pool = SlotPool(slots, lambda: decoder.new_slot(context))
        _warm_up(decoder)
        clock.lap("warm_up")
    # Floating-point products may be summed in another order by another number of threads.
    threads = ThreadGovernor(hardware.threads, enabled=precision.used == {"int8"})
    generator = Generator(decoder, loaded, vocabulary, options.prefill_chunk, context, threads)
    return Runtime(
        options, prepared, config, hardware, loaded, vocabulary, decoder, pool, generator, context, clock.laps
    )


def plan_memory(options: EngineConfig, config: ModelConfig, prepared: PreparedModel) -> tuple[int, int]:
    """Context length and number of KV slots.

    Raises:
        NotEnoughMemory: the budget holds no slot, or the machine does not hold the model.
    """
    context = min(options.context, config.max_position, config.sliding_window or config.max_position)
    per_slot = KvSlot.bytes_for(config, context, torch.float32)
    budget = options.kv_budget_mb * MIB
    if per_slot > budget:
        raise NotEnoughMemory(
            f"A context of {context} tokens takes {per_slot / MIB:.0f} MB of KV cache, the budget is "
            f"{options.kv_budget_mb} MB.",
            f"Set --kv-budget to {-(-per_slot // MIB)} or lower --context.",
        )
    weights = prepared.weights.stat().st_size
    available = psutil.virtual_memory().available
    if options.device == "cpu" and weights + per_slot + WORKING_MEMORY > available:
        raise NotEnoughMemory(
            f"{prepared.source} needs about {(weights + per_slot + WORKING_MEMORY) / MIB:.0f} MB, "
            f"{available / MIB:.0f} MB are free.",
            "Close programs, lower --context, or choose a smaller model.",
        )
    return context, max(1, budget // per_slot)


def _warm_up(decoder: Decoder) -> None:
    # The first calls build kernels and touch the packed weights; the first request should not pay.
    slot = decoder.new_slot(64)
    for rows in (1, 8):
        decoder.forward([0] * rows, slot)


class _StatusProgress:
    """Turns byte counts into fractions for `on_progress`."""

    def __init__(self, on_progress: Callable[[str, float | None], None]) -> None:
        self._report = on_progress
        self._label = ""
        self._total: int | None = None
        self._done = 0
        self._last = 0.0

    def begin(self, label: str, total: int | None) -> None:
        self._label, self._total, self._done = label, total, 0
        self._report(label, 0.0 if total else None)

    def advance(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if self._total and now - self._last > 0.2:
            self._last = now
            self._report(self._label, min(self._done / self._total, 1.0))

    def end(self) -> None:
        pass


_: type[Progress] = _StatusProgress


class _Clock:
    """Laps in milliseconds."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = (now - self._last) * 1000
        self._last = now


class _Background(Generic[T]):
    """A computation beside the main one; the tokenizer loads while the weights are packed."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._value: T | Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(compute,), daemon=True)
        self._thread.start()

    def _run(self, compute: Callable[[], T]) -> None:
        try:
            self._value = compute()
        except Exception as error:
            self._value = error

    def result(self) -> T:
        """Wait for it.

        Raises:
            Whatever the computation raised.
        """
        self._thread.join()
        assert self._value is not None
        if isinstance(self._value, Exception):
            raise self._value
        return self._value
