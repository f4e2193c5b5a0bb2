"""A loaded model with its caches: all that the worker thread needs to serve requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import psutil
import torch

from inference.api import Chunk, EngineConfig, FinishReason, GenerationRequest, Kernels, KvNumerics
from inference.cache.kv import KV_BUCKET, KvSlot
from inference.cache.offload import Parking
from inference.cache.prefix import SlotPool
from inference.draft_loading import DraftFiles, check_vocabularies, find_draft_model, load_draft_model
from inference.drafting.draft_model import DraftModel
from inference.drafting.lessons import Piece
from inference.epochs import Epochs, numerics_key
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
        context: most tokens of one slot.
        load_ms: start-up breakdown by step, milliseconds.
        draft_files: of the draft model, None if there is none.
        epoch: numerics epoch of the decoder; slots of another one are not reused.
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
    draft_files: DraftFiles | None = None
    epochs: Epochs = field(default_factory=Epochs)

    def __post_init__(self) -> None:
        self.epoch = self.epochs.enter(numerics_key(self.decoder, self.hardware))

    @property
    def draft_model(self) -> DraftModel | None:
        """The loaded draft model, None if there is none."""
        return self.generator.draft_model

    @property
    def weight_bytes(self) -> int:
        """Private copies of weights, those of the draft model included."""
        models = [self.decoder, *([self.draft_model.decoder] if self.draft_model is not None else [])]
        return sum(decoder.weights.private_bytes for decoder in models)

    @property
    def slot_bytes(self) -> int:
        """Of one KV slot, with the one of the draft model beside it."""
        return _slot_bytes(self.config, self.context, self.options.kv, self.draft_files)

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
            # Healed tokens are no part of the answer; each has one byte at least.
            room = request.max_new_tokens + len(request.heal.encode())
            slot, cached = self.slots.acquire(
                request.document, request.prompt, room, reuse=reuse, epoch=self.epoch
            )
            if self.draft_model is not None:
                self.draft_model.keep_to(self.slots.slots)
            outcome = self.generator.generate(request, slot, cached, draft, emit, interrupted, reuse)
        if reuse and draft == "auto":
            self.generator.memory.learn_answer(request.document, outcome.token_ids)
        return outcome

    def study(self, piece: Piece) -> None:
        """Read part of a document's text, for guesses."""
        memory, tokens = self.generator.memory, self.tokenizer.encode(piece.text)
        if piece.first:
            memory.learn_text(piece.document, tokens)
        else:
            memory.learn_more(piece.document, tokens)

    def change(self, *, threads: int | None = None, kernels: Kernels | None = None) -> None:
        """Go on with other threads or kernels; for the worker thread, between two requests.

        Answers are then those of a fresh start with them: where bits may differ, an epoch begins in which
        caches of earlier ones are not reused. New kernels pack the weights anew, beside the old ones.
        """
        if threads is not None:
            self.options = replace(self.options, threads=threads)
            self.hardware = replace(self.hardware, threads=threads)
            torch.set_num_threads(threads)
        if kernels is not None and kernels != self.options.kernels:
            self.options = replace(self.options, kernels=kernels)
            compiled = kernels == "auto" and "int8" in precision_of(self.options).used
            library = _Background(compiler.load).result if compiled else None
            self.hardware = probe(self.options, self.config, library)
            with torch.inference_mode():
                self.decoder = load_decoder(
                    self.prepared.weights,
                    self.config,
                    self.hardware,
                    max_positions=self.context,
                    library=library,
                    kv=self.options.kv,
                )
        self.generator.use(self.decoder, _governor(self.options, self.hardware))
        self.epoch = self.epochs.enter(numerics_key(self.decoder, self.hardware))

    def close_document(self, document: str) -> None:
        """Forget what the caches hold of a document, and with the last one that has a slot what was learned
        from all."""
        self.slots.drop_document(document)
        if self.draft_model is not None:
            self.draft_model.follow_targets()
        self.generator.memory.close_document(document)
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
    progress = _StatusProgress(on_progress)
    prepared = prepare(
        options.model,
        options.numerics,
        allow_download=options.allow_download,
        progress=progress,
        mixed=options.mixed,
    )
    draft_files = find_draft_model(options, progress)
    clock.lap("weights")
    config = ModelConfig.from_hf(prepared.config)

    def load_tokenizer() -> tuple[Tokenizer, Vocabulary]:
        tokenizer = Tokenizer(prepared.tokenizer, prepared.config.get("eos_token_ids", ()))
        if draft_files is not None:
            check_vocabularies(prepared, tokenizer, draft_files)
        return tokenizer, Vocabulary(tokenizer)

    words = _Background(load_tokenizer)
    # The first time this compiles, for about a second, while the weights are packed.
    functions = None
    if options.kernels == "auto" and "int8" in precision.layers(config.n_layers):
        functions = _Background(compiler.load)
    hardware = probe(options, config, None if functions is None else functions.result)
    clock.lap("probe")
    library = None if functions is None else functions.result
    context = plan_memory(options, config, prepared, draft_files)
    with torch.inference_mode():
        decoder = load_decoder(
            prepared.weights,
            config,
            hardware,
            max_positions=context,
            on_fraction=lambda fraction: on_progress("Packing the weights.", fraction),
            library=library,
            kv=options.kv,
        )
        clock.lap("pack")
        loaded, vocabulary = words.result()
        clock.lap("tokenizer")
        # Whichever decoder there is by then; see `Runtime.change`.
        pool = _slot_pool(options, decoder, context, draft_files, lambda size: runtime.decoder.new_slot(size))
        draft_model = None
        if draft_files is not None:

            def packing(fraction: float) -> None:
                on_progress("Packing the draft model's weights.", fraction)

            control = list(loaded.control_tokens.values())
            draft_model = load_draft_model(
                draft_files, decoder, hardware, context, options.prefill_chunk, packing, library, control
            )
            _warm_up(draft_model.decoder)
            clock.lap("draft_model")
        _warm_up(decoder)
        clock.lap("warm_up")
    threads = _governor(options, hardware)
    generator = Generator(decoder, loaded, vocabulary, options.prefill_chunk, context, threads, draft_model)
    runtime = Runtime(
        options,
        prepared,
        config,
        hardware,
        loaded,
        vocabulary,
        decoder,
        pool,
        generator,
        context,
        clock.laps,
        draft_files=draft_files,
    )
    return runtime


def _governor(options: EngineConfig, hardware: Hardware) -> ThreadGovernor:
    # Floating-point products may be summed in another order by another number of threads.
    return ThreadGovernor(hardware.threads, enabled=precision_of(options).used == {"int8"})


def plan_memory(
    options: EngineConfig, config: ModelConfig, prepared: PreparedModel, draft: DraftFiles | None = None
) -> int:
    """Context length, which the budget holds at least once, with the draft model's slot beside it.

    Raises:
        NotEnoughMemory: the budget holds no slot, or the machine does not hold the models.
    """
    context = min(options.context, config.max_position, config.sliding_window or config.max_position)
    per_slot = _slot_bytes(config, context, options.kv, draft)
    budget = options.kv_budget_mb * MIB
    if per_slot > budget:
        raise NotEnoughMemory(
            f"A context of {context} tokens takes {per_slot / MIB:.0f} MB of KV cache, the budget is "
            f"{options.kv_budget_mb} MB.",
            f"Set --kv-budget to {-(-per_slot // MIB)} or lower --context.",
        )
    weights, names = prepared.weights.stat().st_size, prepared.source
    if draft is not None:
        weights += draft.prepared.weights.stat().st_size
        names += f" with {draft.name}"
    available = psutil.virtual_memory().available
    if options.device == "cpu" and weights + per_slot + WORKING_MEMORY > available:
        raise NotEnoughMemory(
            f"{names} needs about {(weights + per_slot + WORKING_MEMORY) / MIB:.0f} MB, "
            f"{available / MIB:.0f} MB are free.",
            f"Close programs, lower --context, {'leave out --draft-model, ' if draft else ''}"
            "or choose a smaller model.",
        )
    return context


def slots_budget(options: EngineConfig, config: ModelConfig, draft: DraftFiles | None) -> int:
    """Bytes of the KV budget for the slots of the model itself.

    A slot of the draft model is never longer than the one it follows, so the rest is enough for those.
    """
    with_draft = _slot_bytes(config, KV_BUCKET, options.kv, draft)
    return options.kv_budget_mb * MIB * KvSlot.bytes_for(config, KV_BUCKET, options.kv) // with_draft


def _slot_pool(
    options: EngineConfig,
    decoder: Decoder,
    context: int,
    draft: DraftFiles | None,
    create: Callable[[int], KvSlot],
) -> SlotPool:
    position = KvSlot.bytes_for(decoder.config, KV_BUCKET, options.kv) // KV_BUCKET
    parking = None
    if decoder.device.type == "cuda" and options.kv_offload_mb:
        parking = Parking(options.kv_offload_mb * MIB)
    budget = slots_budget(options, decoder.config, draft)
    return SlotPool(budget, context, position, create, parking)


def _slot_bytes(config: ModelConfig, context: int, kv: KvNumerics, draft: DraftFiles | None) -> int:
    size = KvSlot.bytes_for(config, context, kv)
    if draft is not None:
        size += KvSlot.bytes_for(draft.config, min(context, draft.longest), kv)
    return size


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
