"""The llama.vim plugin over llama-server's ``/infill``, without Vim.

Facts from the plugin's ``autoload/llama.vim``, read in its versions of 2025. When the cursor moves it looks
into its cache, shows what it finds, asks for what would follow a shown suggestion, and asks for the
cursor's place itself. One request runs at a time. While one does, the next waits: it is tried again
every 100 ms, and the newest replaces the others. An answer that comes is kept wherever the cursor is by
then, and is shown at once if what was typed meanwhile agrees with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.peers.base import Editor, PeerFailed, Reply, Usage
from bench.peers.exchange import Cancelled, Exchange, PeerTimeout
from bench.peers.llama_server import LlamaServer
from bench.peers.open_document import OpenDocument
from bench.peers.vim_context import ResultCache, VimContext, context_after, context_at
from bench.peers.vim_request import FIRST_PREDICT_MS, PREDICT_MS, InfillAnswer, infill_request
from bench.peers.vim_suggestion import VimSuggestion, render
from bench.records import Source

RETRY_S = 0.1
MAX_RIGHT = 8  # no automatic request with more bytes right of the cursor


@dataclass(frozen=True)
class VimOptions:
    """What differs from the plugin's defaults, or is no setting of it.

    Attributes:
        first_line_only: answers end at their first newline.
        stops_running_request: a new request cancels the one that runs in place of waiting for it, as the
            plugin's first versions did and as has been proposed since. llama-server notices within a second.
        seed: of the sampling.
        answer_timeout_s: the plugin waits for ever.
    """

    first_line_only: bool = False
    stops_running_request: bool = False
    seed: int = 0
    answer_timeout_s: float = 30.0


@dataclass
class _Ask:
    """A place of the cursor."""

    line: int
    column: int
    began: float
    reply: asyncio.Future[Reply]


class LlamaVim:
    """Implements ``Editor``. ``input_extra``, chunks of other files and places, stays empty.

    A request that waits is dropped when the cursor moves. The plugin's own for what follows a suggestion
    stays and, should it run, mixes the old suggestion with the new text, to no use.
    """

    def __init__(self, name: str, server: LlamaServer, options: VimOptions | None = None) -> None:
        self._name, self._server, self._options = name, server, options or VimOptions()
        self._document = OpenDocument()
        self._cache = ResultCache()
        self._ask: _Ask | None = None
        self._shown: VimSuggestion | None = None
        self._indent = 0
        self._running: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    async def start(self) -> None:
        """Start the server.

        Raises:
            PeerFailed
        """
        await asyncio.to_thread(self._server.start)

    def describe(self) -> dict[str, Any]:
        """The server, and how the plugin is set."""
        plugin = {
            "request": self._request(VimContext("", "", "", "", 0), FIRST_PREDICT_MS),
            "predict_ms_after_suggestion": PREDICT_MS,
            "request_while_one_runs": "cancels it"
            if self._options.stops_running_request
            else f"waits, tried every {RETRY_S * 1000:g} ms",
            "input_extra": "empty: one document is open, and no other was looked at",
            "options": asdict(self._options),
        }
        return {**self._server.describe(), "editor": "llama.vim", "plugin": plugin}

    async def open(self, path: str, language: str, text: str) -> None:
        """Show a document. The plugin sends neither its name nor its language."""
        self._document = OpenDocument(text)

    async def change(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range."""
        self._leave()
        self._document.replace(start, end, text)

    async def ask(self, line: int, column: int) -> Reply:
        """The cursor has come to a place in insert mode."""
        self._leave()
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        ask = self._ask = _Ask(line, column, time.perf_counter(), future)
        self._look_up(None)
        self._ask_server()
        try:
            return await asyncio.wait_for(ask.reply, self._options.answer_timeout_s)
        except asyncio.TimeoutError:
            self._cancel()
            return _timeout(ask)

    async def settle(self) -> None:
        """Wait for the request that runs or is to run."""
        while self._running is not None or self._timer is not None:
            await asyncio.sleep(RETRY_S / 10)

    async def accepted(self, reply: Reply, whole: bool) -> None:
        """Nothing: the text has changed, which hid the suggestion."""

    async def close(self) -> None:
        """Forget the document, all answers, and what the server keeps of it."""
        await self._end()
        self._cache.clear()
        self._document = OpenDocument()
        with contextlib.suppress(PeerFailed):
            await asyncio.to_thread(self._server.forget)

    async def usage(self) -> Usage:
        """Of the server: the plugin's part is Vim's."""
        return self._server.usage()

    async def stop(self) -> None:
        """End the server. Idempotent."""
        await self._end()
        await asyncio.to_thread(self._server.stop)

    def _leave(self) -> None:
        """The cursor moves: who waits gets nothing, and nothing is on screen."""
        ask, self._ask = self._ask, None
        self._shown = None
        self._drop_timer()
        if ask is not None and not ask.reply.done():
            ask.reply.set_result(Reply("superseded", "", ask.column, ask.column, None, "none"))

    def _look_up(self, answer: InfillAnswer | None) -> None:
        """Show a remembered answer; ``answer`` is the one that has just come."""
        ask = self._ask
        if ask is None:
            return
        lines = self._lines(ask.line)
        context = context_at(lines, ask.line, ask.column)
        exact = self._cache.get(context.cache_keys()[0])
        content = exact if exact is not None else self._cache.typed_along(context)
        if content is None:
            return
        shown = self._shown = render(content, lines, ask.line, ask.column)
        # A rest that nobody would see: the answer for this very place is still to come.
        if exact is not None or shown.can_accept:
            self._reply(ask, shown, answer)
        self._ask_server(shown.shown)

    def _ask_server(self, after: Sequence[str] = ()) -> None:
        """Ask for the cursor's place, or for what follows the lines ``after`` of a suggestion."""
        ask = self._ask
        if ask is None:
            return
        if self._running is not None:
            if after or not self._options.stops_running_request:
                self._wait(after)
                return
            self._cancel()
        lines = self._lines(ask.line)
        if after:
            context = context_after(lines, ask.line, after, self._indent)
        else:
            context = context_at(lines, ask.line, ask.column)
            if len(context.right.encode("utf-8", "surrogatepass")) > MAX_RIGHT:
                self._nothing(ask, "max_line_suffix", "none")
                return
        keys = context.cache_keys()
        if any(self._cache.get(key) is not None for key in keys):
            # Remembered for a scrolled view only, it is neither asked for nor shown.
            if not after:
                self._nothing(ask, "remembered for another view", "none")
            return
        self._indent = context.indent
        request = self._request(context, PREDICT_MS if after else FIRST_PREDICT_MS)
        running = self._running = self._server.exchange("/infill", request, self._options.answer_timeout_s)
        task = asyncio.ensure_future(self._run(running, keys))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, running: Exchange, keys: list[bytes]) -> None:
        try:
            answer = InfillAnswer.of(await asyncio.to_thread(running.json))
        except Cancelled:
            return
        except PeerFailed as error:
            if self._running is running:
                self._running = None
                self._failed(error)
            return
        if self._running is not running:
            return  # cancelled when the answer was there already
        self._cache.put(keys, answer.content)
        if self._shown is None or not self._shown.can_accept:
            self._look_up(answer)
        self._running = None
        self._nothing_more()

    def _wait(self, after: Sequence[str]) -> None:
        self._drop_timer()
        self._timer = asyncio.get_running_loop().call_later(RETRY_S, self._try_again, after)

    def _try_again(self, after: Sequence[str]) -> None:
        self._timer = None
        self._ask_server(after)
        self._nothing_more()

    def _nothing_more(self) -> None:
        """A request that waited may have been replaced by the one for what follows: nothing is shown then."""
        if self._ask is not None and self._running is None and self._timer is None:
            self._nothing(self._ask, "no request is left", "none")

    def _reply(self, ask: _Ask, shown: VimSuggestion, answer: InfillAnswer | None) -> None:
        if ask.reply.done():
            return
        if not shown.text:
            self._nothing(ask, shown.reason, "cache" if answer is None else "model")
        elif answer is None:
            ask.reply.set_result(Reply("shown", shown.text, shown.start, shown.end, _ms(ask), "cache"))
        else:
            ask.reply.set_result(
                Reply(
                    "shown",
                    shown.text,
                    shown.start,
                    shown.end,
                    _ms(ask),
                    "model",
                    first_ms=answer.prompt_ms,
                    model_ms=answer.model_ms,
                    prompt_tokens=answer.prompt_tokens,
                    cached_tokens=answer.cached_tokens,
                    tokens=answer.tokens,
                    drafted=answer.drafted,
                    accepted=answer.accepted,
                )
            )

    def _nothing(self, ask: _Ask, reason: str, source: Source) -> None:
        if not ask.reply.done():
            ask.reply.set_result(Reply("nothing", "", ask.column, ask.column, _ms(ask), source, reason))

    def _failed(self, error: PeerFailed) -> None:
        # With a timer, the cursor's place is still to be asked for.
        ask = self._ask
        if ask is None or ask.reply.done() or self._timer is not None:
            return
        if isinstance(error, PeerTimeout):
            ask.reply.set_result(_timeout(ask))
        else:
            ask.reply.set_result(Reply("error", "", ask.column, ask.column, _ms(ask), "none", str(error)))

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancel(self) -> None:
        self._drop_timer()
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    async def _end(self) -> None:
        self._leave()
        self._cancel()
        await asyncio.gather(*self._tasks)

    def _lines(self, line: int) -> Sequence[str]:
        """As Vim has them: the newline at the end of a file begins no line, unless the cursor is on it."""
        lines = self._document.lines
        return lines[:-1] if not lines[-1] and line < len(lines) - 1 else lines

    def _request(self, context: VimContext, predict_ms: int) -> dict[str, Any]:
        return infill_request(context, predict_ms, self._options.seed, self._options.first_line_only)


_: type[Editor] = LlamaVim


def _timeout(ask: _Ask) -> Reply:
    return Reply("timeout", "", ask.column, ask.column, None, "none")


def _ms(ask: _Ask) -> float:
    return (time.perf_counter() - ask.began) * 1000
