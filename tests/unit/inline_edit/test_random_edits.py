"""Random selections and answers of every kind: nothing outside the selection ever changes."""

from __future__ import annotations

import os
import random
from collections import Counter

from lsp_server.documents.line_index import split_lines
from lsp_server.documents.text import Point, Snapshot
from lsp_server.inline_edit.edits import LineEdit, line_edits
from lsp_server.inline_edit.layout import Layout
from lsp_server.inline_edit.reasons import NoEditError
from lsp_server.inline_edit.rewrite import Rewrite
from lsp_server.inline_edit.selection import Selection

CASES = int(os.environ.get("DRAFTLINE_RANDOM_EDITS", "2000"))

WORDS = [
    "x = 1", "return value", "if a:", "    b()", "\tcall(a, b)", "", "}", "{", "café = '日本'", "# a comment",
    "emoji = '👩\u200d💻'", "a\u2028b", "form\x0cfeed", "        deep()", "foo(", ")", "```", "e\u0301 = 1",
]  # fmt: skip


def apply_edits(text: str, edits: tuple[LineEdit, ...]) -> str:
    """By the specification: all ranges are of the original text. Own line arithmetic."""
    starts, at = [0], 0
    while at < len(text):
        if text.startswith("\r\n", at):
            at += 2
        elif text[at] in "\r\n":
            at += 1
        else:
            at += 1
            continue
        starts.append(at)
    for edit in sorted(edits, key=lambda edit: (edit.start.line, edit.start.column), reverse=True):
        start = starts[edit.start.line] + edit.start.column
        end = starts[edit.end.line] + edit.end.column
        assert start <= end <= len(text)
        text = text[:start] + edit.text + text[end:]
    return text


def document(generator: random.Random) -> str:
    eol = generator.choice(["\n", "\n", "\r\n", "\r"])
    mixed = generator.random() < 0.1
    lines = [generator.choice(WORDS) for _ in range(generator.randrange(1, 14))]
    text = "".join(line + (generator.choice(["\n", "\r\n", "\r"]) if mixed else eol) for line in lines)
    if generator.random() < 0.3:
        text = text.rstrip("\r\n")
    return ("\ufeff" if generator.random() < 0.05 else "") + text


def answer(generator: random.Random, shown: list[str]) -> str:
    """What a model might say about the lines it was shown."""
    lines = list(shown)
    for _ in range(generator.randrange(2, 5)):
        place = generator.randrange(len(lines) + 1)
        cut = generator.randrange(3) if generator.random() < 0.7 else 0
        lines[place : place + cut] = [generator.choice(WORDS) for _ in range(generator.randrange(3))]
    indent = generator.choice(["", "", "", "    ", "\t", "  "])
    eol = generator.choice(["\n", "\n", "\n", "\r\n", "\r"])
    body = eol.join(indent + line for line in lines)
    kind = generator.randrange(8)
    if kind == 0:
        return f"Here is the code:{eol}{eol}```python{eol}{body}{eol}```{eol}I changed it."
    if kind == 1:
        return f"```{eol}{body}{eol}```"
    if kind == 2:
        return body + eol + "```" + eol + "Explanation: nothing."
    if kind == 3:
        return body[: generator.randrange(len(body) // 2, len(body) + 1)]
    if kind == 4 and generator.random() < 0.2:
        return generator.choice(["", "Sure!", "\n\n", "```", "\ufffd", "I cannot do that."])
    return body


def test_random_edits() -> None:
    generator = random.Random(7)
    edited, why = 0, Counter[str]()
    for _ in range(CASES):
        text = document(generator)
        snapshot = Snapshot.of(text, language_id="plaintext")
        first = generator.randrange(len(snapshot.lines))
        last = generator.randrange(first, len(snapshot.lines))
        whole = generator.random() < 0.92
        start = Point(first, 0 if whole else generator.randrange(len(snapshot.line(first)) + 1))
        end = Point(
            last, len(snapshot.line(last)) if whole else generator.randrange(len(snapshot.line(last)) + 1)
        )
        if (end.line, end.column) < (start.line, start.column):
            start, end = end, start
        try:
            selection = Selection.of(snapshot, start, end)
        except NoEditError:
            # Nothing but blanks was selected: no case at all, so another is drawn.
            lines = [line for line in snapshot.lines if line.strip()]
            if not lines:
                continue
            selection = Selection.of(snapshot, Point(0, 0), Point(len(snapshot.lines), 0))
            start, end = Point(0, 0), Point(len(snapshot.lines) - 1, len(snapshot.lines[-1]))
        layout = Layout.of(selection.lines)
        said = answer(generator, layout.shown(selection.lines))
        rewrite = Rewrite(selection, "change it", layout)
        at, shown = 0, rewrite.progress
        while at < len(said) and not rewrite.done:
            size = generator.randrange(1, 9)
            rewrite.feed(said[at : at + size])
            at += size
            progress = rewrite.progress
            # Hunks that were reported stay as they are.
            assert progress.hunks[: len(shown.hunks)] == shown.hunks
            partial = apply_edits(text, line_edits(selection, progress.hunks))
            assert_outside(text, partial, snapshot, start, end)
            shown = progress
        try:
            rewritten = rewrite.finish(truncated=generator.random() < 0.1)
        except NoEditError as none:
            why[none.reason] += 1
            continue
        if not rewritten.hunks:
            why["truncated"] += 1
            continue
        edits = line_edits(selection, rewritten.hunks)
        changed = apply_edits(text, edits)
        assert_outside(text, changed, snapshot, start, end)
        assert [line.rstrip("\r\n") for line in split_lines(changed)][
            selection.first : selection.first + len(rewritten.lines)
        ] == list(rewritten.lines)
        edited += changed != text
    assert edited >= 0.8 * CASES, why


def assert_outside(old: str, new: str, snapshot: Snapshot, start: Point, end: Point) -> None:
    before = "".join(snapshot.lines[: start.line]) + snapshot.line(start.line)[: start.column]
    after = snapshot.lines[end.line][end.column :] + "".join(snapshot.lines[end.line + 1 :])
    if end.column == 0 and end.line > start.line:
        # Only the line end in front of it was selected.
        after = "".join(snapshot.lines[end.line :])
    assert new.startswith(before)
    assert new.endswith(after)
