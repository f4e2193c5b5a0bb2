"""Made-up places in made-up files, with what a model that wishes us no good says there."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from lsp_server.completion.clients import CLIENTS
from lsp_server.documents import languages

HUGE_LINE = 200_000

LANGUAGES = sorted(
    {
        *languages._BY_SUFFIX.values(),
        "plaintext",
        "makefile",
        "tex",
        "perl",
        "haskell",
        "swift",
        "zig",
        "unheard",
    }
)

_ODD = (
    "\u2028",  # line and paragraph separators, next line and form feeds end no line in LSP
    "\u2029",
    "\x85",
    "\x0c",
    "\x0b",
    "\x1c",
    "😀",
    "𝒳",
    "👩\u200d👩\u200d👧",
    "e\u0301",  # combining marks
    "ก\u0e31",
    "\ufeff",
    "\t",
    "é",
    "日本",
    "\x00",
    "\u202e",
)
_CODE = (
    "x = 1",
    "return value",
    "foo(",
    "bar(a, b)",
    "items[0]",
    "{ key: 1 }",
    "'text'",
    '"a',
    "`t`",
    "if x:",
    "end",
    "// note",
    "a.b",
    ", ",
    ";",
    " ",
    "$x",
    "${1:x}",
    "\\n",
)
_CLOSING = (
    "",
    "",
    "",
    ")",
    "))",
    "]",
    "}",
    "};",
    '"',
    "')",
    ");",
    " )",
    "):",
    '")',
    '" );',
    ">",
    "`",
    "  ",
    " # note",
    " + b",
)
_SPECIAL = ("<|fim_middle|>", "<|endoftext|>", "<|file_sep|>", "</s>", "<fim_suffix>")


@dataclass(frozen=True)
class Edit:
    """Replace the text between two places (in thousandths of the text) before the request."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Case:
    """Attributes:
    lines: the file without line ends.
    eols: what ends each line, by turns.
    at: the cursor, as line and column in characters, both taken modulo what there is.
    beyond: the request's column lies so many units behind the line's end.
    closing: text put behind the cursor.
    answer: what the model says; ``{rest}`` and ``{head}`` stand for the line behind and before the cursor,
        and ``{below}`` for the next line.
    stops: the engine ends the answer by the request's stop rules, as the real one does.
    popup: characters before and behind the cursor that a popup entry replaces, and the entry's further text.
    typed: so many characters of the suggestion are typed, then it is asked for again.
    late: the document changes while the model works.
    """

    language: str
    client: str
    replace_suffix: bool | None
    encoding: str
    lines: tuple[str, ...]
    eols: tuple[str, ...]
    bom: bool
    huge: bool
    at: tuple[int, int]
    beyond: int
    closing: str
    edits: tuple[Edit, ...]
    answer: str
    stops: bool
    popup: tuple[int, int, str] | None
    typed: int
    late: bool


def _joined(*pools: tuple[str, ...], most: int = 4) -> st.SearchStrategy[str]:
    pieces = tuple(piece for pool in pools for piece in pool)
    return st.lists(st.sampled_from(pieces), max_size=most).map("".join)


def _indented(line: tuple[int, int, str]) -> str:
    depth, tab, text = line
    return ("\t" if tab == 0 else " " * tab) * depth + text


_LINES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from((0, 2, 4, 8)), _joined(_CODE, _CODE, _ODD)).map(_indented),
    min_size=1,
    max_size=7,
).map(lambda lines: tuple(lines) if any(map(str.strip, lines)) or len(lines) > 3 else (*lines, "text"))
_EOLS = st.sampled_from(
    (("\n",), ("\r\n",), ("\r",), ("\n", "\r\n"), ("\r", "\n"), ("\n", "\r", "\r\n"), ("\r\n", "\r"))
)
_WORDS = _joined(_CODE, _CODE, _CODE, _ODD, _SPECIAL, most=3).map(lambda text: text + "w")
_BREAK = st.sampled_from(("\n", "\r\n", "\r", "\n\n", " \n", "\n\t", "\n    "))
_BLOCK = st.tuples(_WORDS, _BREAK, _WORDS, _BREAK, _WORDS).map("".join)
_ANSWERS = st.one_of(
    _WORDS,
    _WORDS,
    _WORDS,
    _WORDS,
    _BLOCK,
    _BLOCK,
    st.tuples(
        _WORDS, st.sampled_from(("{rest}", "{rest} + 1", ") + 1", "))", '" + "c', "}\n", "]", ")", ");"))
    ).map("".join),
    # Brings what stands behind the cursor itself, and goes on.
    st.sampled_from(("a{rest} + b", "f(a){rest}.g(b)", "a, b{rest}\nw")),
    st.tuples(_WORDS, _BREAK, st.just("{below}"), _BREAK, _WORDS).map("".join),
    _BLOCK.map(lambda text: "{head}" + text),
    _BLOCK.map(lambda text: "```python\n" + text + "\n```\nexplained"),
    _WORDS.map(lambda text: text + "   \t "),
    _WORDS.map(lambda text: text + "\ufffd"),
    _WORDS.map(lambda text: text + "\ud83d"),
    _WORDS.map(lambda text: text + "\udc00" + text),
    _WORDS.map(lambda text: text + " ".join(f"word{number}" for number in range(500))),
    st.sampled_from(
        ("", "word", "other", "third", " \n\t", "more()", "a.b", "\r", "\ufffd", "{rest}", "last")
    ),
)
_EDITS = st.lists(
    st.builds(
        Edit, st.integers(0, 1000), st.integers(0, 40), st.one_of(_joined(_CODE, _ODD), _BREAK, st.just(""))
    ),
    max_size=3,
).map(tuple)
_POPUP = st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from(("ath", "😀()", "lue ", "", "x(a)")))


def _rarely(one_in: int) -> st.SearchStrategy[bool]:
    # In the middle, as hypothesis prefers the ends of a range.
    return st.integers(0, one_in - 1).map(lambda drawn: drawn == one_in // 2)


def _sometimes(
    strategy: st.SearchStrategy[tuple[int, int, str]],
) -> st.SearchStrategy[tuple[int, int, str] | None]:
    return st.one_of(st.none(), st.none(), st.none(), strategy)


CASES = st.builds(
    Case,
    language=st.sampled_from(LANGUAGES),
    client=st.sampled_from(CLIENTS),
    replace_suffix=st.sampled_from((None, None, True, False)),
    encoding=st.sampled_from(("utf-8", "utf-16", "utf-32")),
    lines=_LINES,
    eols=_EOLS,
    bom=_rarely(8),
    huge=_rarely(200),
    at=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    beyond=st.sampled_from((0, 0, 0, 0, 0, 1, 99)),
    closing=st.sampled_from(_CLOSING),
    edits=_EDITS,
    answer=_ANSWERS,
    stops=st.booleans(),
    popup=_sometimes(_POPUP),
    typed=st.sampled_from((0, 0, 1, 2, 5, 12)),
    late=_rarely(40),
)
