"""Any server with OpenAI's ``/v1/completions``, as a plain completion plugin would use it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from bench.peers.base import Editor, PeerFailed, Reply, Usage
from bench.peers.exchange import Cancelled, Exchange, PeerTimeout
from bench.peers.open_document import OpenDocument
from bench.peers.openai_completions import Completion, CompletionsApi, read_completion
from bench.quality.answers import Infilled, Infiller
from lsp_server.prompts.families import FAMILIES, Part

LINES_BEFORE = 256
LINES_AFTER = 64
TOKENS = 128
ANSWER_TIMEOUT_S = 30.0

EDITOR = "editor"
FIRST_LINE = "first line"

_QWEN = next(family for family in FAMILIES if family.name == "qwen2.5-coder")


@dataclass(frozen=True)
class GapStyle:
    """How the gap is told to the server.

    Attributes:
        suffix_parameter: by the API's own ``suffix`` in place of Qwen's fill-in-the-middle tokens, for
            servers that know their model's format.
    """

    suffix_parameter: bool = False

    def request(self, api: CompletionsApi, prefix: str, suffix: str, stops: tuple[str, ...] = ()) -> Exchange:
        """A request for the text between two others."""
        if self.suffix_parameter:
            return api.request(prefix, TOKENS, stops, {"suffix": suffix})
        parts = {Part.PREFIX: prefix, Part.SUFFIX: suffix}
        prompt = "".join(item if isinstance(item, str) else parts[item] for item in _QWEN.template)
        return api.request(prompt, TOKENS, stops)


class OpenAiEditor:
    """Implements ``Editor``: one request for each key, the one before cancelled; no cache, no waiting.

    It sends 256 lines before and 64 behind the cursor and takes one line where text follows on the
    cursor's line.
    """

    def __init__(self, name: str, api: CompletionsApi, style: GapStyle | None = None) -> None:
        self._name, self._api, self._style = name, api, style or GapStyle()
        self._document = OpenDocument()
        self._running: Exchange | None = None

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    async def start(self) -> None:
        """Look whether it answers.

        Raises:
            PeerFailed
        """
        await asyncio.to_thread(self._api.start)

    def describe(self) -> dict[str, Any]:
        """The server, and how it is used."""
        settings = {
            "lines_before": LINES_BEFORE,
            "lines_after": LINES_AFTER,
            "max_tokens": TOKENS,
            "temperature": 0,
            "gap": "suffix parameter" if self._style.suffix_parameter else _QWEN.name,
        }
        return {**self._api.describe(), "editor": "one request for each key, no cache", "settings": settings}

    async def open(self, path: str, language: str, text: str) -> None:
        """Show a document."""
        self._document = OpenDocument(text)

    async def change(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range."""
        self._cancel()
        self._document.replace(start, end, text)

    async def ask(self, line: int, column: int) -> Reply:
        """Ask for the text at the cursor."""
        self._cancel()
        began = time.perf_counter()
        lines = self._document.lines
        right = lines[line][column:]
        prefix = "\n".join([*lines[max(line - LINES_BEFORE, 0) : line], lines[line][:column]])
        suffix = "\n".join([right, *lines[line + 1 : line + 1 + LINES_AFTER]])
        stops = ("\n",) if right.strip() else ()
        running = self._running = self._style.request(self._api, prefix, suffix, stops)
        work = asyncio.to_thread(read_completion, running)
        try:
            answer = await asyncio.wait_for(work, ANSWER_TIMEOUT_S)
        except Cancelled:
            return Reply("superseded", "", column, column, None, "none")
        except (asyncio.TimeoutError, PeerTimeout):
            running.cancel()
            return Reply("timeout", "", column, column, None, "none")
        except PeerFailed as error:
            return Reply("error", "", column, column, _ms(began), "none", str(error))
        return _reply(answer, _trimmed(answer.text), column, _ms(began))

    async def settle(self) -> None:
        """Nothing: it only answers."""

    async def accepted(self, reply: Reply, whole: bool) -> None:
        """The API has no word for it."""

    async def close(self) -> None:
        """Forget the document; what the server keeps cannot be dropped."""
        self._cancel()
        self._document = OpenDocument()

    async def usage(self) -> Usage:
        """Unknown: the server is not ours."""
        return Usage(None, None, None)

    async def stop(self) -> None:
        """Nothing was started."""
        self._cancel()

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()
            self._running = None


class OpenAiInfill:
    """Implements ``Infiller``.

    Variants: "editor" takes one line where text follows on the gap's line, and all otherwise; "first line"
    one always.
    """

    variants = (EDITOR, FIRST_LINE)

    def __init__(self, name: str, api: CompletionsApi, style: GapStyle | None = None) -> None:
        self._name, self._api, self._style = name, api, style or GapStyle()

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    def start(self) -> None:
        """Look whether it answers.

        Raises:
            PeerFailed
        """
        self._api.start()

    def describe(self) -> dict[str, Any]:
        """The server."""
        return self._api.describe()

    def infill(self, prefix: str, suffix: str, variant: str) -> Infilled:
        """The text for the gap.

        Raises:
            PeerFailed: it does not answer.
        """
        one_line = variant == FIRST_LINE or bool(suffix.partition("\n")[0].strip())
        answer = read_completion(self._style.request(self._api, prefix, suffix, ("\n",) if one_line else ()))
        return Infilled(_trimmed(answer.text), answer.ms, answer.tokens)

    def stop(self) -> None:
        """Nothing was started."""


_: type[Editor] = OpenAiEditor
__: type[Infiller] = OpenAiInfill


def _trimmed(text: str) -> str:
    """Without control tokens that a server writes out, what follows them, and blanks at the end."""
    for spelling in (*_QWEN.controls, *_QWEN.stops):
        text = text.partition(spelling)[0]
    return text.rstrip()


def _reply(answer: Completion, text: str, column: int, ms: float) -> Reply:
    shown = bool(text)
    return Reply(
        "shown" if shown else "nothing",
        text,
        column,
        column,
        ms,
        "model",
        "" if shown else "empty",
        first_ms=answer.first_ms,
        model_ms=answer.ms,
        prompt_tokens=answer.prompt_tokens,
        cached_tokens=answer.cached_tokens,
        tokens=answer.tokens,
    )


def _ms(began: float) -> float:
    return (time.perf_counter() - began) * 1000
