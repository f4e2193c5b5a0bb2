"""Recorded answers: what drafters can be tried on without the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from bench.speculation.prompts import SetPrompt
from inference.drafting.recycling import TOP
from inference.runtime import Runtime


@dataclass(frozen=True)
class Recording:
    """A prompt and its greedy answer.

    Attributes:
        set, item: of the prompt, see `SetPrompt`.
        prompt, output: token ids.
        top: for each token of ``output`` the likeliest tokens at its place, itself the first.
        max_tokens: where the answer would have been cut.
    """

    set: str
    item: int
    prompt: tuple[int, ...]
    output: tuple[int, ...]
    top: tuple[tuple[int, ...], ...]
    max_tokens: int


def record(runtime: Runtime, prompts: Iterable[SetPrompt]) -> Iterator[Recording]:
    """Decode prompts token by token, without drafts and caches."""
    decoder = runtime.decoder
    slot = decoder.new_slot(runtime.context)
    for prompt in prompts:
        slot.truncate(0)
        ids, output, top = list(prompt.prompt.ids), list[int](), list[tuple[int, ...]]()
        step = runtime.options.prefill_chunk
        with torch.inference_mode():
            for start in range(0, len(ids), step):
                block = ids[start : start + step]
                logits = decoder.forward(block, slot, len(block) - 1)
            while True:
                assert logits is not None
                top.append(tuple(torch.topk(logits[-1], TOP).indices.tolist()))
                output.append(top[-1][0])
                if output[-1] in prompt.stop_ids or len(output) >= prompt.max_tokens:
                    break
                logits = decoder.forward([output[-1]], slot)
        yield Recording(prompt.set, prompt.item, tuple(ids), tuple(output), tuple(top), prompt.max_tokens)


def save(recordings: Iterable[Recording], path: Path) -> None:
    """As JSON lines. They hold the prompts' code."""
    with path.open("w", encoding="utf-8") as file:
        for recording in recordings:
            file.write(json.dumps(asdict(recording)) + "\n")
            file.flush()


def load(path: Path) -> list[Recording]:
    """What `save` wrote."""
    recordings = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            fields = json.loads(line)
            fields["prompt"], fields["output"] = tuple(fields["prompt"]), tuple(fields["output"])
            fields["top"] = tuple(map(tuple, fields["top"]))
            recordings.append(Recording(**fields))
    return recordings
