"""Fill-in-the-middle prompts as token ids."""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.api import TextCodec
from lsp_server.documents.positions import without_surrogates
from lsp_server.prompts.context_files import ContextFile as ContextFile
from lsp_server.prompts.context_files import Lead
from lsp_server.prompts.families import FAMILIES, Family, Part, Template


@dataclass(frozen=True)
class FimFormat:
    """A family bound to a vocabulary: control tokens as ids.

    Attributes:
        begin: ids in front of everything.
        items: ids and parts in the order of the prompt.
        suffix_first: the same for the order "spm" (`Family.suffix_first`).
        stop_ids: tokens that end an answer; every control token of the vocabulary is one, so that
            none of them can leak into a document.
    """

    family: Family
    begin: tuple[int, ...]
    items: tuple[int | Part, ...]
    suffix_first: tuple[int | Part, ...]
    stop_ids: frozenset[int]

    @property
    def overhead(self) -> int:
        """Control tokens of a prompt without other files."""
        return len(self.begin) + sum(isinstance(item, int) for item in self.items)


@dataclass(frozen=True)
class FimParts:
    """Text for a prompt. Nothing is cut here: each part has been made to fit (prompts/fit.py).

    Attributes:
        prefix: text before the cursor.
        suffix: text after the cursor.
        head: the text between ``prefix`` and the cursor, put behind the middle marker as the begin of
            the answer. While the user types only this changes, so that the tokens before it, the suffix
            included, need not be read again.
        lead: other files, shown before everything else.
        suffix_first: the order "spm"; ``head`` must be empty.
    """

    prefix: str
    suffix: str
    head: str = ""
    lead: Lead = field(default_factory=Lead)
    suffix_first: bool = False


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
    becomes that token. Parts are encoded one by one, so the prompt is as long as they are together.
    """
    texts = {Part.PREFIX: parts.prefix, Part.SUFFIX: parts.suffix}
    prompt: list[int] = [*format.begin, *parts.lead.outside]
    for item in format.suffix_first if parts.suffix_first else format.items:
        if isinstance(item, int):
            prompt.append(item)
            continue
        if item is Part.PREFIX:
            prompt.extend(parts.lead.inside)
        prompt.extend(_encode(texts[item], codec))
    return (*prompt, *_encode(parts.head, codec))


def _encode(text: str, codec: TextCodec) -> list[int]:
    return codec.encode(without_surrogates(text)) if text else []


def _bind(family: Family, codec: TextCodec) -> FimFormat:
    begin = codec.special(family.begin) if family.begin else None
    items = _ids(family.template, codec)
    stops = {codec.special(spelling) for spelling in family.stops} - {None}
    controls = {item for item in items if isinstance(item, int)}
    stop_ids = codec.special_ids | codec.end_ids | controls | {id for id in stops if id is not None}
    return FimFormat(
        family,
        () if begin is None else (begin,),
        items,
        _ids(family.suffix_first, codec),
        frozenset(stop_ids),
    )


def _ids(template: Template, codec: TextCodec) -> tuple[int | Part, ...]:
    items: list[int | Part] = []
    for item in template:
        id = item if isinstance(item, Part) else codec.special(item)
        assert id is not None, "checked by find_format"
        items.append(id)
    return tuple(items)
