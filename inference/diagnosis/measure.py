"""A short measurement of a loaded model: start-up, memory, speed, and whether its bits hold."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inference.api import EngineConfig, TextCodec
from inference.diagnosis.machine import private_bytes, resident_bytes_of
from inference.diagnosis.numerics import NumericsCost, compare
from inference.openmp import import_torch
from inference.precision import precision_of

if TYPE_CHECKING:
    from inference.cache.kv import KvSlot
    from inference.model.decoder import Decoder
    from inference.runtime import Runtime

# The self-test's prompt, and the blocks it is fed in; 40 is the whole prompt at once.
TEST_TOKENS = 40
TEST_BLOCKS = (1, 3, 8, 16, 40)

FORWARD_ROWS = (1, 8, 16)
CACHED_TOKENS = 256  # what a decode step finds in the cache
PREFILL_TOKENS = 384
REPEATS = 7
# A machine busy with other work must not turn a short measurement into a long one.
SECONDS_EACH = 4.0


@dataclass(frozen=True)
class Kernel:
    """A candidate of the probe.

    Attributes:
        ms: for one row, None if that was not measured; see `inference.probe.race.KernelReport`.
        row_ms: the same for each number of rows that was measured.
        problem: why it cannot be used, "" if its values are right.
    """

    name: str
    exact: bool
    ms: float | None
    chosen: bool
    row_ms: dict[int, float] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Choices:
    """What the probe chose for this machine; see `inference.hardware.Hardware`.

    ``compiled``: the steps between the linear layers are compiled functions; ``not_compiled`` says why not.
    ``kernels_chosen``: "now", "never" where there is nothing to choose, or the time of the stored choice, UTC
    and ISO 8601; ``kernels_file`` is where it is kept, "" if it is not.
    """

    device: str
    instruction_set: str
    threads: int
    numerics: str
    kernels: tuple[Kernel, ...]
    attention_tiles: tuple[int, ...]
    compiled: bool
    not_compiled: str
    bit_exact: bool
    notes: tuple[str, ...]
    kernels_chosen: str = "never"
    kernels_file: str = ""


@dataclass(frozen=True)
class StartUp:
    """Milliseconds. ``steps`` are those of the runtime, in order."""

    import_torch: float
    import_engine: float
    steps: dict[str, float]


@dataclass(frozen=True)
class MemoryUse:
    """Bytes.

    Attributes:
        packed: private copies of the weights, which no other process shares.
        mapped: the weights files, whose pages all processes share and the system may drop.
        mapped_resident: the part of them in memory for this process, None if unknown.
        slot: of one KV slot that has grown to the whole context, with the draft model's beside it; ``slots``
            of them fit into the budget, and more smaller ones.
        loaded: private memory of the whole process once the model was loaded.
        private: the same after the measurement, with the working memory of forward passes.
        kv_budget: for all KV slots on the device; kv_used: what they take; kv_numerics: how they store rows.
        kv_main: what they may take of main memory.
    """

    packed: int
    mapped: int
    mapped_resident: int | None
    slot: int
    slots: int
    context: int
    loaded: int
    private: int
    kv_budget: int
    kv_used: int
    kv_numerics: str
    kv_main: int

    @property
    def need(self) -> int:
        """Private memory once the budget for KV slots is used up."""
        return self.private + self.kv_main


@dataclass(frozen=True)
class Speed:
    """Medians. ``forward_ms`` maps rows to the time of one forward pass."""

    forward_ms: dict[int, float]
    decode_tokens_per_s: float
    prefill_tokens_per_s: float


@dataclass(frozen=True)
class SelfTest:
    """The same prompt in blocks of several sizes; ``differing`` are the sizes whose logits had other
    bits than the whole prompt at once."""

    tokens: int
    blocks: tuple[int, ...]
    differing: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """All blocks gave the same bits."""
        return not self.differing


@dataclass(frozen=True)
class DraftModelUse:
    """Of the draft model alone: what it is, bytes as in `MemoryUse`, and its forward of one row."""

    source: str
    packed: int
    mapped: int
    slot: int
    context: int
    forward_ms: float


@dataclass(frozen=True)
class Measured:
    """A model that was loaded in this process; ``memory`` is of the draft model too if there is one.

    ``compared`` are all numerics for it, not only its own.
    """

    source: str
    choices: Choices
    start_up: StartUp
    memory: MemoryUse
    speed: Speed
    self_test: SelfTest
    fill_in_the_middle: bool
    draft_model: DraftModelUse | None = None
    compared: tuple[NumericsCost, ...] = ()


def measure(
    config: EngineConfig,
    on_progress: Callable[[str, float | None], None],
    has_fim: Callable[[TextCodec], bool] = lambda codec: True,
    fresh: bool = False,
) -> Measured:
    """Load the model in this thread and measure it. Never downloads if ``config`` forbids it.

    Args:
        has_fim: tells whether a vocabulary has a fill-in-the-middle format.
        fresh: forget the stored choice of kernels first.

    Raises:
        DraftlineError: the model cannot be loaded; with the reason and the next step.
    """
    torch_ms = _timed(import_torch)
    engine_ms = _timed(lambda: importlib.import_module("inference.runtime"))
    import torch

    from inference.probe import stored
    from inference.runtime import load_runtime

    if fresh:
        stored.forget()
    runtime = load_runtime(config, on_progress)
    loaded = private_bytes()
    with torch.inference_mode():
        on_progress("Testing exactness.", None)
        self_test = _self_test(runtime)
        on_progress("Measuring speed.", None)
        speed = _speed(runtime)
        draft_model = _draft_model(runtime)
        memory = _memory(runtime, loaded)  # before other numerics take some
        on_progress("Comparing numerics.", None)
        compared = compare(runtime)
    return Measured(
        source=runtime.prepared.source,
        choices=_choices(runtime),
        start_up=StartUp(torch_ms, engine_ms, dict(runtime.load_ms)),
        memory=memory,
        speed=speed,
        self_test=self_test,
        fill_in_the_middle=has_fim(runtime.tokenizer),
        draft_model=draft_model,
        compared=compared,
    )


def _timed(load: Callable[[], object]) -> float:
    start = time.perf_counter()
    load()
    return (time.perf_counter() - start) * 1000


def _choices(runtime: Runtime) -> Choices:
    hardware = runtime.hardware
    chosen = None if hardware.int8_kernel is None else hardware.int8_kernel.value
    kernels = tuple(
        Kernel(r.name, r.exact, r.row_ms.get(1), r.name == chosen, dict(r.row_ms), r.problem)
        for r in hardware.reports
    )
    choice = hardware.kernel_choice
    return Choices(
        device=str(hardware.device),
        instruction_set=hardware.isa,
        threads=hardware.threads,
        numerics=str(precision_of(runtime.options)),
        kernels=kernels,
        attention_tiles=tuple(hardware.attention_tiles),
        compiled=runtime.decoder.fused,
        not_compiled=runtime.decoder.note,
        bit_exact=hardware.bit_exact,
        notes=tuple(note for note in (*hardware.notes, runtime.decoder.graph_note) if note),
        kernels_chosen="never" if choice is None else choice.date or "now",
        kernels_file="" if choice is None or choice.file is None else str(choice.file),
    )


def _memory(runtime: Runtime, loaded: int) -> MemoryUse:
    files = [runtime.prepared.weights]
    if runtime.draft_files is not None:
        files.append(runtime.draft_files.prepared.weights)
    resident = [resident_bytes_of(file) for file in files]
    known = [part for part in resident if part is not None]
    kv = runtime.slots.usage()
    return MemoryUse(
        packed=runtime.weight_bytes,
        mapped=sum(file.stat().st_size for file in files),
        mapped_resident=sum(known) if len(known) == len(files) else None,
        slot=runtime.slot_bytes,
        slots=(runtime.options.kv_budget_mb << 20) // runtime.slot_bytes,
        context=runtime.context,
        loaded=loaded,
        private=private_bytes(),
        kv_budget=kv.budget,
        kv_used=kv.used,
        kv_numerics=runtime.options.kv,
        kv_main=kv.parking_budget if runtime.hardware.device.type == "cuda" else kv.budget,
    )


def _test_prompt(runtime: Runtime, count: int) -> list[int]:
    """Ids spread over the vocabulary: any text would do, but every vocabulary has these."""
    vocabulary = runtime.config.vocab_size
    return [(7919 * i + 13) % vocabulary for i in range(count)]


def _self_test(runtime: Runtime) -> SelfTest:
    import torch

    prompt = _test_prompt(runtime, TEST_TOKENS)

    def logits(block: int) -> torch.Tensor:
        slot = runtime.decoder.new_slot(TEST_TOKENS)
        rows = []
        for start in range(0, TEST_TOKENS, block):
            part = runtime.decoder.forward(prompt[start : start + block], slot)
            assert part is not None
            rows.append(part)
        return torch.cat(rows)

    whole = logits(TEST_TOKENS)
    differing = tuple(block for block in TEST_BLOCKS[:-1] if not torch.equal(logits(block), whole))
    return SelfTest(TEST_TOKENS, TEST_BLOCKS, differing)


def _speed(runtime: Runtime) -> Speed:
    decoder = runtime.decoder
    room = runtime.context - max(FORWARD_ROWS)
    slot = decoder.new_slot(runtime.context)
    prompt = _test_prompt(runtime, min(PREFILL_TOKENS, room))
    start = time.perf_counter()
    chunk = runtime.options.prefill_chunk
    for first in range(0, len(prompt), chunk):
        last = first + chunk >= len(prompt)
        block = prompt[first : first + chunk]
        decoder.forward(block, slot, len(block) - 1 if last else None)
    prefill = len(prompt) / (time.perf_counter() - start)
    slot.truncate(min(CACHED_TOKENS, len(prompt)))
    forward = {rows: _median_ms(decoder, slot, prompt[:rows]) for rows in FORWARD_ROWS}
    return Speed(forward, 1000 / forward[1], prefill)


def _median_ms(decoder: Decoder, slot: KvSlot, block: list[int]) -> float:
    """Of a forward pass behind what the slot holds."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS_EACH
    while len(times) < REPEATS and (not times or time.perf_counter() < end):
        length = slot.length
        start = time.perf_counter()
        decoder.forward(block, slot)
        times.append((time.perf_counter() - start) * 1000)
        slot.truncate(length)
    return statistics.median(times)


def _draft_model(runtime: Runtime) -> DraftModelUse | None:

    from inference.cache.kv import KvSlot

    model, files = runtime.draft_model, runtime.draft_files
    if model is None or files is None:
        return None
    decoder = model.decoder
    slot = decoder.new_slot(model.context)
    decoder.forward([0] * min(CACHED_TOKENS, model.context - 1), slot, None)
    return DraftModelUse(
        source=files.prepared.source,
        packed=decoder.weights.private_bytes,
        mapped=files.prepared.weights.stat().st_size,
        slot=KvSlot.bytes_for(decoder.config, model.context, decoder.kv),
        context=model.context,
        forward_ms=_median_ms(decoder, slot, [0]),
    )
