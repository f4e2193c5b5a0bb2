"""The prompts that are decoded: four sets, the same ids and ends for every system and mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench.peers.base import Prompt
from bench.places import BenchPlace
from bench.quality.datasets import EditTask, InfillTask
from bench.quality.edit_prompt import edit_prompt
from bench.speculation.instructions import INSTRUCTIONS
from inference.api import TextCodec
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.pipeline import prepare
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.prompt import END, START
from lsp_server.prompts.families import FAMILIES


@dataclass(frozen=True)
class SetPrompt:
    """One prompt of a set. It is decoded to one of ``stop_ids`` or to ``max_tokens``: no other stop rules,
    so that all systems decode the same number of tokens."""

    set: str
    item: int
    prompt: Prompt
    max_tokens: int
    stop_ids: frozenset[int]


class PromptMaker:
    """Renders prompts for one vocabulary.

    Args:
        context: tokens of prompt and answer together; prompts that do not fit are left out.
        options: of the completions; how much of a file a prompt shows.
        max_tokens: to decode, for each set.
    """

    def __init__(
        self, codec: TextCodec, context: int, options: CompletionOptions, max_tokens: dict[str, int]
    ) -> None:
        self._codec = codec
        self._context = context
        self._options = options
        self._max_tokens = max_tokens
        self._builder = PromptBuilder(codec, context)
        self._spellings = _spellings(codec)

    @property
    def fills_in(self) -> bool:
        """Whether the vocabulary has a fill-in-the-middle format, which "fim" and "real" need."""
        return self._builder.format is not None

    @property
    def chats(self) -> bool:
        """Whether the vocabulary has ChatML's tokens, which "edit" and "fresh" need."""
        return all(self._codec.special(spelling) is not None for spelling in (START, END))

    def fim(self, tasks: Iterable[InfillTask]) -> list[SetPrompt]:
        """The language server's own prompts at the gaps of HumanEval-Infilling (arXiv 2207.14255)."""
        return self._set("fim", [self._infill(task) for task in tasks])

    def real(self, places: Iterable[BenchPlace]) -> list[SetPrompt]:
        """The language server's own prompts at places in real files."""
        return self._set("real", [self._fill(place.snapshot, place.cursor, "real") for place in places])

    def edit(self, tasks: Iterable[EditTask]) -> list[SetPrompt]:
        """Code to be written anew with a change (EditEval of InstructCoder, arXiv 2310.20329)."""
        prompts = [edit_prompt(self._codec, task.instruction, task.code) for task in tasks]
        return self._set("edit", [(prompt.ids, prompt.stop_ids) for prompt in prompts])

    def fresh(self, count: int) -> list[SetPrompt]:
        """The first ``count`` instructions of a fixed list, in ChatML."""
        return self._set("fresh", [(self._chat(text), self._ends) for text in INSTRUCTIONS[:count]])

    @property
    def _ends(self) -> frozenset[int]:
        return self._codec.end_ids | self._codec.special_ids

    def _infill(self, task: InfillTask) -> tuple[tuple[int, ...], frozenset[int]]:
        snapshot = Snapshot.of(task.prompt + task.suffix, task.id, language_id="python")
        above, _, head = task.prompt.rpartition("\n")
        line = above.count("\n") + 1 if "\n" in task.prompt else 0
        return self._fill(snapshot, Point(line, len(head)), "fim")

    def _fill(self, snapshot: Snapshot, cursor: Point, name: str) -> tuple[tuple[int, ...], frozenset[int]]:
        options = replace(self._options, max_new_tokens=self._max_tokens[name])
        request = prepare(snapshot, cursor, self._builder, options).request
        return request.prompt, request.stops.token_ids

    def _chat(self, text: str) -> tuple[int, ...]:
        start, end = self._codec.special(START), self._codec.special(END)
        assert start is not None and end is not None, "asked for by `chats`"
        encode = self._codec.encode
        user = (start, *encode("user\n" + text), end, *encode("\n"))
        return (*user, start, *encode("assistant\n"))

    def _set(self, name: str, prompts: Sequence[tuple[tuple[int, ...], frozenset[int]]]) -> list[SetPrompt]:
        max_tokens = self._max_tokens[name]
        return [
            SetPrompt(name, item, Prompt(ids, self._text(ids)), max_tokens, stop_ids)
            for item, (ids, stop_ids) in enumerate(prompts)
            if len(ids) + max_tokens <= self._context
        ]

    def _text(self, ids: tuple[int, ...]) -> str:
        """The prompt with its control tokens spelt out."""
        parts: list[str] = []
        plain: list[int] = []
        for id in ids:
            if id not in self._spellings:
                plain.append(id)
                continue
            parts += (self._codec.decode(plain), self._spellings[id])
            plain = []
        return "".join((*parts, self._codec.decode(plain)))


def _spellings(codec: TextCodec) -> dict[int, str]:
    """Of the control tokens that prompts are made with; a codec decodes them to nothing."""
    known = {START, END}
    for family in FAMILIES:
        known |= {*family.controls, *family.needs, *family.stops, family.begin}
    ids = {codec.special(spelling): spelling for spelling in sorted(known - {""})}
    return {id: spelling for id, spelling in ids.items() if id is not None}
