"""How much a run measures."""

from __future__ import annotations

from dataclasses import dataclass

# "fim": HumanEval-Infilling, "real": places in real files, "edit": EditEval, "fresh": nothing to copy from.
SETS = ("fim", "real", "edit", "fresh")

# In one forward the drafted tokens follow each other: no version of Draftline drafts alternatives yet.
TREE_WIDTH = 1


@dataclass(frozen=True)
class Extent:
    """Counts and sizes of everything in a run.

    Attributes:
        count: prompts of each set.
        prompt_tokens: most tokens of a prompt made from a file.
        max_tokens: decoded for a prompt of each set.
        sweep_items: prompts of each set in the sweep; sweep_limits: its most drafted tokens for a forward.
        numerics_items: prompts of each set that other numerics decode.
        passes: over large buffers, for the floors.
        forward_rows: new tokens of a forward; forward_contexts: cached tokens of a forward of one row.
        forward_repeats: of each forward.
        parts_rows: new tokens of a forward whose parts are timed, behind ``parts_context`` cached ones, and
            parts_prefill: behind none, as a block of a prompt.
        prefill_tokens: of prompts read from nothing; prefill_repeats: of each.
        memory_context: tokens in the cache when memory is measured.
    """

    count: int
    repeats: int
    prompt_tokens: int
    max_tokens: dict[str, int]
    sweep_items: int
    sweep_limits: tuple[int, ...]
    numerics_items: int
    passes: int
    forward_rows: tuple[int, ...]
    forward_contexts: tuple[int, ...]
    forward_repeats: int
    parts_rows: tuple[int, ...]
    parts_context: int
    parts_prefill: int
    prefill_tokens: tuple[int, ...]
    prefill_repeats: int
    memory_context: int


FULL = Extent(
    count=12,
    repeats=3,
    prompt_tokens=1024,
    max_tokens={"fim": 64, "real": 64, "edit": 256, "fresh": 96},
    sweep_items=4,
    sweep_limits=(1, 2, 3, 5, 7, 11, 15),
    numerics_items=4,
    passes=7,
    forward_rows=(1, 2, 4, 8, 16, 32),
    forward_contexts=(256, 1024, 2048, 3500),
    forward_repeats=9,
    parts_rows=(1, 8, 16, 32),
    parts_context=1024,
    parts_prefill=512,
    prefill_tokens=(64, 128, 256, 512, 1024, 2048),
    prefill_repeats=3,
    memory_context=1024,
)

# Under a minute with an int8 0.5B on two slow cores, the load included.
QUICK = Extent(
    count=1,
    repeats=1,
    prompt_tokens=192,
    max_tokens={"fim": 24, "real": 24, "edit": 48, "fresh": 24},
    sweep_items=1,
    sweep_limits=(1, 15),
    numerics_items=1,
    passes=2,
    forward_rows=(1, 4, 16),
    forward_contexts=(256, 1024),
    forward_repeats=2,
    parts_rows=(1, 16),
    parts_context=256,
    parts_prefill=64,
    prefill_tokens=(64, 256),
    prefill_repeats=1,
    memory_context=256,
)
