"""Fill-in-the-middle prompts as token ids."""

from __future__ import annotations

from dataclasses import dataclass

from inference.api import TextCodec
from lsp_server.documents.positions import without_surrogates
from lsp_server.prompts.families import FAMILIES, Family, Part


@dataclass(frozen=True)
class FimFormat:
    """A family bound to a vocabulary: control tokens as ids.

    Attributes:
        items: ids and parts in the order of the prompt.
        stop_ids: tokens that end an answer; every control token of the vocabulary is one, so that
            none of them can leak into a document.
    """

    family: Family
    items: tuple[int | Part, ...]
    stop_ids: frozenset[int]

    @property
    def overhead(self) -> int:
        """Control tokens of a prompt."""
        return sum(isinstance(item, int) for item in self.items)


@dataclass(frozen=True)
class ContextFile:
    """A piece of another place that a prompt shows: a path as a reader would write it, and its text."""

    path: str
    text: str


@dataclass(frozen=True)
class FimParts:
    """Text for a prompt, each part with the most tokens it may take.

    Attributes:
        prefix: text before the cursor; too many tokens are cut at its start.
        suffix: text after the cursor; too many tokens are cut at its end.
        head: the text between ``prefix`` and the cursor, put behind the middle marker as the begin of
            the answer. While the user types on one line only this changes, so that the tokens before
            it, the suffix included, need not be read again.
        context: pieces of other places, shown before everything else, least related first.
    """

    prefix: str
    suffix: str
    head: str = ""
    max_prefix: int | None = None
    max_suffix: int | None = None
    context: tuple[ContextFile, ...] = ()


def find_format(codec: TextCodec) -> FimFormat | None:
    """The format of the vocabulary's family, or None if it has no fill-in-the-middle tokens."""
    for family in FAMILIES:
        ids = {spelling: codec.special(spelling) for spelling in (*family.controls, *family.needs)}
        if any(id is None for id in ids.values()):
            continue
        if any(codec.special(spelling) is not None for spelling in family.lacks):
            continue
        return _bind(family, codec)
    return None


def render(format: FimFormat, parts: FimParts, codec: TextCodec) -> tuple[int, ...]:
    """Token ids of the prompt.

    The document's text is encoded as plain text: the spelling of a control token inside it never
    becomes that token.
    """
    prefix = codec.encode(without_surrogates(parts.prefix))
    suffix = codec.encode(without_surrogates(parts.suffix))
    head = codec.encode(without_surrogates(parts.head)) if parts.head else []
    if parts.max_prefix is not None:
        head = head[max(0, len(head) - parts.max_prefix) :]
        prefix = prefix[max(0, len(prefix) - (parts.max_prefix - len(head))) :]
    if parts.max_suffix is not None:
        suffix = suffix[: parts.max_suffix]
    prompt: list[int] = []
    for item in format.items:
        if isinstance(item, int):
            prompt.append(item)
        else:
            prompt.extend(prefix if item is Part.PREFIX else suffix)
    return (*prompt, *head)


def _bind(family: Family, codec: TextCodec) -> FimFormat:
    items: list[int | Part] = []
    begin = codec.special(family.begin) if family.begin else None
    if begin is not None:
        items.append(begin)
    for item in family.template:
        id = item if isinstance(item, Part) else codec.special(item)
        assert id is not None, "checked by find_format"
        items.append(id)
    stops = {codec.special(spelling) for spelling in family.stops} - {None}
    controls = {item for item in items if isinstance(item, int)}
    stop_ids = codec.special_ids | codec.end_ids | controls | {id for id in stops if id is not None}
    return FimFormat(family, tuple(items), frozenset(stop_ids))
