"""How the demo looks on a terminal, in colours or without."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from lsp_server.demo.places import Place
from lsp_server.demo.trials import Duel, OneMoreKey, Shot

CONTEXT_LINES = 4
GHOST = "dim italic"
_THEME = "ansi_dark"


class Screen:
    """Prints the parts of the demo in order.

    Ghost text is dim and italic. Where the output has no styles it stands between ``{+`` and ``+}``
    instead, and the cursor is a plain ``|``.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._plain = not console.is_terminal or console.no_color
        ascii_only = not console.encoding.lower().startswith("utf")
        self._cursor = "|" if self._plain or ascii_only else "▏"
        self._check, self._cross = ("ok", "DIFFERENT") if ascii_only else ("✓", "✗ different")

    def heading(self, text: str) -> None:
        """Begin a part."""
        self._console.print()
        self._console.rule(Text(text, "bold"), align="left", style="dim")

    def say(self, text: str, style: str = "") -> None:
        """A sentence."""
        self._console.print(Text(text, style))

    def shot(self, shot: Shot) -> None:
        """A file around the cursor, with the suggestion in place."""
        place = shot.place
        title = Text.assemble(
            (place.spot.title, "bold"),
            f"  {place.spot.file}:{place.cursor.line + 1}:{place.cursor.column + 1}",
        )
        if shot.suggestion is None:
            footer = Text(f"no suggestion ({shot.reason})", "yellow")
        else:
            footer = Text(
                f"{shot.prompt_tokens} prompt tokens, first token {shot.first_ms:.0f} ms, "
                f"all {shot.total_ms:.0f} ms"
            )
        self._console.print(
            Panel(self._code(shot), title=title, title_align="left", subtitle=footer, subtitle_align="right")
        )

    def duels(self, duels: Sequence[Duel]) -> None:
        """Plain against speculative decoding, with a sum."""
        table = Table("place", pad_edge=False, box=None, header_style="bold")
        for heading in ("tokens", "plain", "speculative", "gain", "tokens/pass"):
            table.add_column(heading, justify="right")
        table.add_column("same", justify="center")
        for duel in duels:
            table.add_row(
                duel.place.spot.title,
                str(duel.plain.tokens + 1),
                f"{duel.plain.tokens_per_s:.1f}",
                f"{duel.speculative.tokens_per_s:.1f}",
                _ratio(duel.plain.ms, duel.speculative.ms),
                f"{duel.speculative.tokens_per_forward:.2f}",
                self._verdict(duel.same),
            )
        tokens = sum(duel.plain.tokens for duel in duels)
        plain_ms = sum(duel.plain.ms for duel in duels)
        spec_ms = sum(duel.speculative.ms for duel in duels)
        forwards = sum(duel.speculative.forwards for duel in duels)
        if forwards and plain_ms and spec_ms:
            table.add_section()
            table.add_row(
                Text("together", "bold"),
                str(tokens + len(duels)),
                f"{1000 * tokens / plain_ms:.1f}",
                f"{1000 * tokens / spec_ms:.1f}",
                _ratio(plain_ms, spec_ms),
                f"{tokens / forwards:.2f}",
                self._verdict(all(duel.same for duel in duels)),
            )
        self._console.print(table)
        self._console.print(
            Text("Columns 3 and 4 in tokens per second. Same: all tokens and the text are equal.", "dim")
        )

    def one_more_key(self, key: OneMoreKey) -> None:
        """Cold against warm cache."""
        table = Table("the next key", pad_edge=False, box=None, header_style="bold")
        table.add_column("tokens read", justify="right")
        table.add_column("first token after", justify="right")
        table.add_row("cold cache", str(key.prompt_tokens), f"{key.cold_ms:.0f} ms")
        read = key.prompt_tokens - key.cached_tokens
        table.add_row("warm cache", str(read), f"{key.warm_ms:.0f} ms")
        if key.typed_along_ms is not None:
            table.add_row("typed along: no model asked", "0", f"{key.typed_along_ms:.2f} ms")
        self._console.print(table)
        verdict = self._verdict(key.same)
        self._console.print(
            Text(f"after typing {key.key!r} in {key.place.spot.file}; text from cold and warm cache: "),
            verdict,
            sep="",
        )

    def _verdict(self, same: bool) -> Text:
        return Text(self._check, "bold green") if same else Text(self._cross, "bold red")

    def _code(self, shot: Shot) -> Text:
        place = shot.place
        number, column = place.cursor.line, place.cursor.column
        lines = place.snapshot.lines
        first = max(0, number - CONTEXT_LINES)
        last = min(len(lines), number + CONTEXT_LINES + 1)
        text = Text(no_wrap=True, overflow="ellipsis")
        for index in range(first, last):
            text.append(f"{index + 1:>4} ", "dim")
            line = _highlighted(place, place.snapshot.line(index))
            if index == number:
                end = column if shot.suggestion is None else shot.suggestion.range.end
                text.append_text(line[:column])
                text.append(self._cursor, "bold magenta")
                self._append_ghost(text, "" if shot.suggestion is None else shot.suggestion.text)
                text.append_text(line[end:])
            else:
                text.append_text(line)
            if index + 1 < last:
                text.append("\n")
        return text

    def _append_ghost(self, text: Text, ghost: str) -> None:
        if not ghost:
            return
        if self._plain:
            ghost = "{+" + ghost + "+}"
        # New lines of the ghost text have no number yet: the file does not hold them.
        text.append(ghost.replace("\n", "\n" + " " * 5), GHOST)


def _highlighted(place: Place, line: str) -> Text:
    syntax = Syntax("", place.snapshot.language_id or "text", theme=_THEME)
    highlighted = syntax.highlight(line)
    highlighted.rstrip()
    # Highlighting drops blanks at the ends of the text, and columns must stay what they are.
    return highlighted if highlighted.plain == line else Text(line)


def _ratio(before: float, after: float) -> str:
    return f"{before / after:.2f}x" if after > 0 else "-"
