"""llama.vim's way to fill one gap, without an editor around it."""

from __future__ import annotations

import time
from typing import Any

from bench.peers.llama_server import LlamaServer
from bench.peers.vim_context import context_at
from bench.peers.vim_request import FIRST_PREDICT_MS, InfillAnswer, infill_request, without_chance
from bench.peers.vim_suggestion import render
from bench.quality.answers import Infilled, Infiller

PLUGIN = "plugin"
FIRST_LINE = "first line"
ANSWER_TIMEOUT_S = 120.0


class LlamaVimInfill:
    """Implements ``Infiller``: the plugin's view of the document, its samplers and its trimming.

    In place of sampling, the likeliest token of those that the samplers leave is taken. The plugin's time
    limit for the cursor's place holds, as it decides where most answers end. Variants: "plugin" as it is,
    which may have several lines; "first line" with its setting ``stop_strings``.
    """

    variants = (PLUGIN, FIRST_LINE)

    def __init__(self, name: str, numerics: str, server: LlamaServer) -> None:
        self._name, self._numerics, self._server = name, numerics, server

    @property
    def name(self) -> str:
        """For tables."""
        return self._name

    def start(self) -> None:
        """Start the server.

        Raises:
            PeerFailed
        """
        self._server.start()

    def describe(self) -> dict[str, Any]:
        """The server, and what is asked of it."""
        facts = self._server.describe()
        return {
            **facts,
            "numerics": self._numerics or facts.get("model_type", ""),
            "editor": "llama.vim",
            "request": self._request("", "", first_line_only=False),
        }

    def infill(self, prefix: str, suffix: str, variant: str) -> Infilled:
        """The text for the gap, as the plugin would insert it.

        On a blank line that is what follows the blanks that stand there, even where the plugin would take
        some of them away.

        Raises:
            PeerFailed: it does not answer.
        """
        lines, line, column = _place(prefix, suffix)
        request = self._request(prefix, suffix, variant == FIRST_LINE)
        began = time.perf_counter()
        answer = InfillAnswer.of(self._server.exchange("/infill", request, ANSWER_TIMEOUT_S).json())
        ms = (time.perf_counter() - began) * 1000
        shown = render(answer.content, lines, line, column)
        text = shown.text if shown.start == column else shown.text.lstrip(" \t")
        return Infilled(text, ms, answer.tokens)

    def stop(self) -> None:
        """End the server. Idempotent."""
        self._server.stop()

    def _request(self, prefix: str, suffix: str, first_line_only: bool) -> dict[str, Any]:
        context = context_at(*_place(prefix, suffix))
        request = infill_request(context, FIRST_PREDICT_MS, seed=0, first_line_only=first_line_only)
        return without_chance(request)


_: type[Infiller] = LlamaVimInfill


def _place(prefix: str, suffix: str) -> tuple[list[str], int, int]:
    """Lines of a document, and line and column of its gap."""
    lines = (prefix + suffix).split("\n")
    if not lines[-1] and "\n" in suffix:
        lines.pop()  # as in Vim, the newline at the end of a file begins no line
    return lines, prefix.count("\n"), len(prefix.rpartition("\n")[2])
