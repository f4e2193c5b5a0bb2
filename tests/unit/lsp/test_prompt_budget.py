"""A prompt is never over its budget, whatever the text, and what is cut is cut at lines where it can be."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.api import TextCodec
from inference.tokenizer import Tokenizer
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.prompt import PromptBuilder
from lsp_server.context.related import KeptLines
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.context_files import ContextFile
from lsp_server.prompts.fit import fit_begin, fit_end
from lsp_server.prompts.order import PromptOrder
from tests.fake_engine import FakeCodec
from tests.tiny_models import make_tokenizer

ORDERS: tuple[PromptOrder, ...] = get_args(PromptOrder)


class GreedyJoint(FakeCodec):
    """Counts by lines are too low: a text has a token more for every newline that another line follows."""

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for at, char in enumerate(text):
            ids.append(ord(char))
            if char == "\n" and at + 1 < len(text):
                ids += [ord("+")] * 3
        return ids


@lru_cache(maxsize=1)
def byte_pairs() -> Tokenizer:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "tokenizer.json"
        make_tokenizer().save(str(path))
        return Tokenizer(path)


CODECS = {"characters": FakeCodec, "greedy": GreedyJoint, "byte pairs": byte_pairs}

ODD = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="ab \t\n", max_size=400),
    st.integers(0, 3000).map(lambda n: "\n" * n),
    st.integers(0, 3000).map(lambda n: "\t" * n + "x\n"),
    st.integers(0, 2000).map(lambda n: "🙂" * n),
    st.integers(0, 4000).map(lambda n: "word " * n),
    st.integers(0, 300).map(lambda n: "    value = compute(1)\n" * n),
    st.just("<|fim_middle|>\r\n<|endoftext|>\r"),
    st.just("e\u0301\ud83d\n"),
)
TEXTS = st.lists(ODD, max_size=4).map("".join)


@pytest.mark.parametrize("name", CODECS)
@settings(max_examples=60, deadline=None)
@given(before=TEXTS, after=TEXTS, tokens=st.integers(16, 700), data=st.data())
def test_never_over_budget(name: str, before: str, after: str, tokens: int, data: st.DataObject) -> None:
    codec: TextCodec = CODECS[name]()
    builder = PromptBuilder(codec, 1024)
    context_tokens = data.draw(st.integers(0, 200))
    files = [ContextFile(path, text) for path, text in data.draw(st.lists(st.tuples(ODD, ODD), max_size=2))]
    snapshot = Snapshot.of(before + after, "file:///a/b.py", language_id="python")
    cursor = Point(len(Snapshot.of(before).lines) - 1, len(Snapshot.of(before).lines[-1]))
    cursor = snapshot.locate(cursor, "utf-32")
    sources = data.draw(st.sets(st.sampled_from(["scope", "tabs"])))
    kept = [KeptLines(0, 1, snapshot.lf(0, 1), 0), KeptLines(3, 4, "def f():\n", 1, verbatim=False)]
    for order in ORDERS:
        options = CompletionOptions(
            order=order,
            prompt_tokens=tokens,
            max_new_tokens=64,
            context_sources=frozenset(sources),
            context_tokens=context_tokens,
        )
        built = builder.build(snapshot, cursor, options, files, kept)
        assert len(built.ids) <= tokens
        assert len(built.ids) + built.answer <= 1024


LONG = {
    "one huge line": "x = [" + "1234567, " * 30_000,
    "ten thousand blank lines": "\n" * 10_000,
    "emoji": "🙂" * 20_000,
    "tabs": "\t" * 20_000 + "x\n",
    "short lines": "a\n" * 20_000,
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("order", ORDERS)
def test_long_texts_are_cut_and_their_near_ends_kept(name: str, order: PromptOrder) -> None:
    text, codec = LONG[name], byte_pairs()
    lines = Snapshot.of(text + "near" + "es" + text)
    where = next(number for number, line in enumerate(lines.lines) if "neares" in line)
    cursor = Point(where, lines.lines[where].index("neares") + 4)
    options = CompletionOptions(order=order, prompt_tokens=300, heal=False)
    built = PromptBuilder(codec, 4096).build(lines, cursor, options)
    assert 60 <= len(built.ids) <= 300
    shown = codec.decode(built.ids)
    assert "near" in shown and "es" in shown
    if order != "spm":
        assert shown.endswith("near") or order == "psm"


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.integers(0, 60), st.sampled_from(sorted(CODECS)))
def test_fit(text: str, limit: int, name: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    codec: TextCodec = CODECS[name]()

    def count(piece: str) -> int:
        return len(codec.encode(piece))

    end, begin = fit_end(text, limit, count), fit_begin(text, limit, count)
    assert count(end) <= limit and count(begin) <= limit
    assert text.endswith(end) and text.startswith(begin)
    if count(text) <= limit:
        assert end == begin == text


def test_whole_lines_are_dropped_and_a_single_line_is_cut() -> None:
    assert fit_end("one\ntwo\nthree\n", 10, len) == "two\nthree\n"
    assert fit_end("one\ntwo\nthree", 9, len) == "two\nthree"
    assert fit_begin("one\ntwo\nthree\n", 9, len) == "one\ntwo\n"
    assert fit_end("one\n0123456789", 5, len) == "56789"
    assert fit_begin("0123456789\none", 5, len) == "01234"
    assert fit_end("one\ntwo", 0, len) == "" and fit_begin("\none", 0, len) == ""


def test_the_cut_of_a_long_line_stays_for_some_keys() -> None:
    line = "x = [" + "1234567, " * 60
    starts = {len(line) + typed - len(fit_end(line + "8" * typed, 200, len)) for typed in range(50)}
    assert len(starts) <= 4
