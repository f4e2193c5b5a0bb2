"""Which prompts a run decodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.places import sample
from bench.quality.datasets import load_edits, load_random_span, subset
from bench.speculation.extent import SETS, Extent
from bench.speculation.prompts import PromptMaker, SetPrompt


@dataclass(frozen=True)
class Sources:
    """Where prompts come from.

    Attributes:
        sets: names, of ``SETS``.
        data: the directory with the files of tasks, None if there is none.
        repo: the directory with source files.
        seed: decides which tasks and places are taken.
    """

    sets: Sequence[str]
    data: Path | None
    repo: Path
    seed: int


def collect(
    maker: PromptMaker, sources: Sources, extent: Extent, on_missing: Callable[[str], None]
) -> list[SetPrompt]:
    """The prompts of all sets, one of each set after the other, so that a stopped run has seen all sets.

    Args:
        on_missing: told a sentence for each set that has no prompts.

    Raises:
        BadData: a file of tasks is missing or not what it should be.
    """
    prompts: list[SetPrompt] = []
    for name in sources.sets:
        missing, found = _lacks(name, maker, sources), []
        if not missing:
            found = _prompts(name, maker, sources, extent.count)
            missing = "" if found else "there are no prompts for it that fit into the context"
        if missing:
            on_missing(f"the set {name} is left out: {missing}")
        prompts += found
    return sorted(prompts, key=lambda prompt: (prompt.item, SETS.index(prompt.set)))


def _lacks(name: str, maker: PromptMaker, sources: Sources) -> str:
    """What a set needs and is not there; "" if nothing."""
    if name in ("fim", "edit") and sources.data is None:
        return "it needs the files of tasks, --data DIR"
    if name in ("fim", "real") and not maker.fills_in:
        return "the model has no fill-in-the-middle format"
    if name in ("edit", "fresh") and not maker.chats:
        return "the model has no tokens for turns of a chat"
    return ""


def _prompts(name: str, maker: PromptMaker, sources: Sources, count: int) -> list[SetPrompt]:
    if name == "real":
        return maker.real(sample(sources.repo, count, sources.seed))
    if name == "fresh":
        return maker.fresh(count)
    assert sources.data is not None, "checked before"
    if name == "fim":
        return maker.fim(subset(load_random_span(sources.data), count, sources.seed))
    return maker.edit(subset(load_edits(sources.data), count, sources.seed))
