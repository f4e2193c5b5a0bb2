"""Retypes one item into one system: strokes, requests, what is on the screen, what is taken."""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench.peers.base import Editor, Reply
from bench.peers.open_document import OpenDocument
from bench.records import Action, Item, Key
from bench.replay.items import ReplayItem
from bench.replay.screen import AcceptPolicy, ghost_text, is_right, portion, right_chars
from bench.replay.script import Place, TypistScript

Pace = Literal["await", "human", "fast"]
PACES: tuple[Pace, ...] = ("await", "human", "fast")

# Of the suggestions that a user could take, this share is typed along instead.
ALONG_RATE = 0.25
# A suggestion is seen and judged before a key takes it.
REACTION_SECONDS = 0.3


@dataclass(frozen=True)
class Manner:
    """How the user types.

    Attributes:
        pace: "await" waits for each answer before the next key, so that keys and texts do not depend on
            time; "human" pauses as the script says, whether an answer is there or not; "fast" does not
            pause at all, and nothing is taken.
    """

    pace: Pace = "await"
    accept: AcceptPolicy = "whole"
    seed: int = 0


@dataclass
class _Asked:
    """A key and its answer, which may still be on its way.

    ``remaining`` is what is to be typed at the cursor, "" at other places and behind wrong text.
    """

    index: int
    action: Action
    along: bool
    cursor: Place
    document: str
    remaining: str
    reply: asyncio.Task[Reply]
    ghost: str = ""
    seen_at: float = 0.0


class Typist:
    """One item in one system.

    Args:
        on_key: gets each key's record as soon as its answer is there.
    """

    def __init__(
        self, editor: Editor, item: ReplayItem, manner: Manner, on_key: Callable[[Key], None]
    ) -> None:
        self._editor = editor
        self._item = item
        self._manner = manner
        self._on_key = on_key
        self._script = TypistScript(item, manner.seed)
        self._text = item.before + item.after  # what the editor was told
        self._cursor: Place = end_of(item.before)
        self._asked: _Asked | None = None  # the newest
        self._answering: set[asyncio.Task[None]] = set()
        self._ghost = ""  # on the screen, as far as it is not typed yet
        self._along_until = len(item.removed)  # type along while more than this remains
        self._keys = self._taken = self._accepts = 0

    async def run(self) -> Item:
        """Type until the document is the original again; the item's record."""
        editor, item = self._editor, self._item
        before, began = await editor.usage(), time.perf_counter()
        await editor.open(item.path, item.language, self._text)
        await self._ask("move", along=False)
        while (peeked := copy.copy(self._script).next_stroke()) is not None:
            if not await self._taken_while_waiting(peeked.pause_ms / 1000):
                await self._type()
        await asyncio.gather(*self._answering)
        await editor.close()
        after = await editor.usage()
        known = before.cpu_seconds is not None and after.cpu_seconds is not None
        return Item(
            system=editor.name,
            item=item.index,
            kind=item.kind,
            path=item.path,
            language=item.language,
            removed_chars=len(item.removed),
            typed_chars=len(item.removed) - self._taken,
            accepted_chars=self._taken,
            accepts=self._accepts,
            keys=self._keys,
            restored=self._text == item.original,
            seconds=time.perf_counter() - began,
            cpu_seconds=(after.cpu_seconds or 0) - (before.cpu_seconds or 0) if known else None,
            private_bytes=after.private_bytes,
            mapped_bytes=after.mapped_bytes,
        )

    async def _type(self) -> None:
        stroke = self._script.next_stroke()
        assert stroke is not None
        await self._change(stroke.start, stroke.end, stroke.text)
        self._cursor = stroke.cursor
        along = bool(stroke.text) and stroke.start == stroke.end and self._ghost.startswith(stroke.text)
        self._ghost = self._ghost[len(stroke.text) :] if along else ""
        if stroke.ask:
            await self._ask(stroke.action, along)

    async def _change(self, start: Place, end: Place, text: str) -> None:
        if start == end and not text:
            return  # only the cursor moves
        self._text = replaced(self._text, start, end, text)
        await self._editor.change(start, end, text)

    async def _taken_while_waiting(self, seconds: float) -> bool:
        """Let time pass until the next key; whether a suggestion was taken instead of it."""
        asked, pace = self._asked, self._manner.pace
        if asked is None or pace == "fast":
            return False
        if pace == "await":
            return await self._take(asked)
        next_key = time.perf_counter() + seconds
        await asyncio.wait({asked.reply}, timeout=seconds)
        if asked.ghost and self._wanted(asked.ghost):
            await asyncio.sleep(max(asked.seen_at + REACTION_SECONDS - time.perf_counter(), 0))
            return await self._take(asked)
        await asyncio.sleep(max(next_key - time.perf_counter(), 0))
        return False

    async def _take(self, asked: _Asked) -> bool:
        """Take what the user wants of the suggestion on the screen."""
        text = self._wanted(asked.ghost)
        if not text:
            return False
        await self._change(self._cursor, self._cursor, text)
        self._script.took(text)
        self._cursor = moved(self._cursor, text)
        self._taken += len(text)
        self._accepts += 1
        self._ghost = asked.ghost[len(text) :]
        await self._editor.accepted(asked.reply.result(), text == asked.ghost)
        await self._ask("accept", along=bool(self._ghost))
        return True

    def _wanted(self, ghost: str) -> str:
        """What the user takes now of a suggestion, "" if typing goes on, also along it."""
        remaining = self._script.remaining
        if not ghost or not self._script.takeable or len(remaining) > self._along_until:
            return ""
        text = portion(self._manner.accept, ghost, remaining)
        # Decided by the place alone, so that every system's user decides alike.
        chance = random.Random(f"{self._manner.seed} {self._item.index} {len(remaining)} along")
        if text and chance.random() < ALONG_RATE:
            self._along_until = len(remaining) - len(text)
            return ""
        return text

    async def _ask(self, action: Action, along: bool) -> None:
        line, column = self._cursor
        reply = asyncio.ensure_future(self._editor.ask(line, column))
        asked = self._asked = _Asked(
            index=self._keys,
            action=action,
            along=along,
            cursor=self._cursor,
            document=self._text,
            remaining=self._script.remaining if self._script.takeable else "",
            reply=reply,
        )
        self._keys += 1
        answering = asyncio.ensure_future(self._answer(asked))
        self._answering.add(answering)
        if self._manner.pace == "await":
            await answering
            # Not timed: a typist's pause would leave room for it.
            await self._editor.settle()
        else:
            await asyncio.sleep(0)

    async def _answer(self, asked: _Asked) -> None:
        """What the editor does with an answer: shows it if it is still for the text there is."""
        reply = await asked.reply
        newest = asked is self._asked and asked.document == self._text
        line = asked.document.split("\n")[asked.cursor[0]]
        ghost = ghost_text(reply, line, asked.cursor[1]) if newest else ""
        if newest:
            asked.ghost = self._ghost = ghost
            asked.seen_at = time.perf_counter()
        self._on_key(self._key(asked, reply, ghost, newest))

    def _key(self, asked: _Asked, reply: Reply, ghost: str, newest: bool) -> Key:
        outcome = reply.outcome
        if outcome == "shown" and not ghost:
            # Too late, or it would change text that stands there: nobody sees it.
            outcome = "nothing" if newest else "superseded"
        line, column = asked.cursor
        before = asked.document.split("\n")[:line]
        known = reply.prompt_tokens is not None and reply.cached_tokens is not None
        return Key(
            system=self._editor.name,
            item=self._item.index,
            index=asked.index,
            action=asked.action,
            along=asked.along,
            kind=self._item.kind,
            path=self._item.path,
            language=self._item.language,
            line=line + 1,
            column=column + 1,
            position=sum(len(text) + 1 for text in before) + column,
            document_chars=len(asked.document),
            outcome=outcome,
            ms=reply.ms,
            source=reply.source,
            reason=reply.reason,
            text=ghost,
            right_chars=right_chars(ghost, asked.remaining),
            right=is_right(ghost, asked.remaining),
            first_ms=reply.first_ms,
            model_ms=reply.model_ms,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=reply.cached_tokens,
            new_tokens=(reply.prompt_tokens or 0) - (reply.cached_tokens or 0) if known else None,
            tokens=reply.tokens,
            drafted=reply.drafted,
            accepted=reply.accepted,
            forwards=reply.forwards,
        )


def end_of(text: str) -> Place:
    """The place behind ``text``."""
    return moved((0, 0), text)


def moved(place: Place, text: str) -> Place:
    """The place behind ``text`` that is inserted at ``place``."""
    lines = text.split("\n")
    if len(lines) == 1:
        return place[0], place[1] + len(text)
    return place[0] + len(lines) - 1, len(lines[-1])


def replaced(text: str, start: Place, end: Place, new: str) -> str:
    """``text`` with ``new`` between two places."""
    document = OpenDocument(text)
    document.replace(start, end, new)
    return "\n".join(document.lines)
