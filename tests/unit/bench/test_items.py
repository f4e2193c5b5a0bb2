"""Which pieces of source files are typed again."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from bench.replay.items import KINDS, ReplayItem, sample_items
from bench.replay.pieces import header_language, pieces
from tests.unit.bench.replay_sources import CPP, PYTHON, SOURCES, C

ROOT = Path(__file__).parents[3]


def _removed(text: str, language: str, kind: str) -> set[str]:
    found = pieces(text, language, random.Random(1))
    return {text[piece.start : piece.end] for piece in found if piece.kind == kind}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name, (_, text) in SOURCES.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    return tmp_path


@pytest.mark.parametrize("language, text", SOURCES.values(), ids=SOURCES)
def test_every_language_has_every_kind(language: str, text: str) -> None:
    assert Counter(piece.kind for piece in pieces(text, language, random.Random(1))).keys() == set(KINDS)


def test_bodies_keep_header_docstring_and_comment() -> None:
    assert _removed(PYTHON, "python", "body") == {
        "self.things: dict[str, int] = {}\n"
        "        self.path = path  # where it lies\n"
        "\n"
        "        self.changed = False",
        PYTHON[PYTHON.index("with open") : PYTHON.index("\n\n    def largest")],
        PYTHON[PYTHON.index("try:") : PYTHON.index("\n\n\ndef cached")],
        PYTHON[PYTHON.index("@functools") : PYTHON.index("\n\n\nCACHE")],
        "key = (function, args)\n        return CACHE.setdefault(key, function(*args))",
    }


def test_blocks_are_the_insides_of_statements() -> None:
    assert _removed(PYTHON, "python", "block") == {
        "data = json.load(file)\n            self.things.update(data)",
        'if count < 0:\n                print("negative", name)\n                raise ValueError(name)',
        'print("negative", name)\n                raise ValueError(name)',
        "best = max(\n                names,\n                key=self.things.__getitem__,\n            )",
        "print(error)\n            best = names[0]",
        "best = best[:-1]\n            self.changed = True",
    }


def test_a_bracket_that_closes_a_block_stays_on_its_line() -> None:
    for language, text in SOURCES.values():
        if language == "python":
            continue
        for piece in pieces(text, language, random.Random(1)):
            if piece.kind in ("body", "block"):
                assert text[piece.end :].lstrip().startswith(("}", "//")), text[piece.start : piece.end]
                assert "\n" in text[piece.end : piece.end + 2]


def test_lines_are_whole_statements() -> None:
    lines = _removed(PYTHON, "python", "line")
    assert "self.path = path  # where it lies" in lines
    assert "return CACHE.setdefault(key, function(*args))" in lines
    assert not any(line.startswith(("#", '"', "if", "for", "names,", "best = max(")) for line in lines)


@pytest.mark.parametrize("language, text", SOURCES.values(), ids=SOURCES)
def test_what_is_removed_begins_behind_an_indentation_and_ends_a_line(language: str, text: str) -> None:
    for seed in range(20):
        for piece in pieces(text, language, random.Random(seed)):
            removed = text[piece.start : piece.end]
            assert 8 <= len(removed) <= 400
            assert removed == removed.rstrip()
            assert text[piece.end :].split("\n")[0].strip() == ""
            head = text[: piece.start].rpartition("\n")[2]
            assert bool(head.strip()) == (piece.kind == "rest-of-line")
            if piece.kind != "rest-of-line":
                assert removed == removed.lstrip()


def test_lines_are_cut_everywhere_but_in_comments_and_docstrings() -> None:
    text = (
        'def f(x):\n    """One\n    two three four.\n    """\n'
        "    value = compute_it(x)  # a comment here\n    # and one more\n"
    )
    cuts = {next(iter(_cut(text, seed)), "") for seed in range(300)} - {""}
    assert len(cuts) > 15
    assert all("value = compute_it(x)  # a comment here".endswith(cut) for cut in cuts)
    assert any(cut.startswith("te_it") for cut in cuts)
    assert all(cut.lstrip()[0] != "#" for cut in cuts)


def _cut(text: str, seed: int) -> list[str]:
    found = pieces(text, "python", random.Random(seed))
    return [text[piece.start : piece.end] for piece in found if piece.kind == "rest-of-line"]


@pytest.mark.parametrize(
    "body",
    [
        '    """Only this docstring, nothing else."""\n',
        "    # only this comment, and then nothing\n    # more\n",
        "    f()\n",
    ],
)
def test_nothing_worth_typing_is_no_piece(body: str) -> None:
    assert pieces("def function(argument):\n" + body, "python", random.Random(1)) == []


def test_long_functions_and_blocks_give_only_parts() -> None:
    lines = "".join(f"        a{i} = {i}\n" for i in range(11))
    text = "def f(x):\n    if x:\n" + lines + "".join(f"    b{i} = {i}\n" for i in range(13))
    assert _removed(text, "python", "body") == set()
    assert _removed(text, "python", "block") == set()
    shorter = text.replace("        a0 = 0\n", "")
    assert len(_removed(shorter, "python", "body")) == 1
    assert len(_removed(shorter, "python", "block")) == 1


def test_what_stands_twice_is_left_out_however_it_is_indented() -> None:
    once = "def f(x):\n    first = g(x)\n    return first + 1\n"
    again = "class A:\n    def f(self, x):\n        first = g(x)\n        return first + 1\n"
    assert len(_removed(once, "python", "body")) == 1
    assert _removed(once + again, "python", "body") == set()


def test_functions_that_do_not_parse_are_left_out() -> None:
    broken = "def f(x):\n    first = (g(x)\n    return first + 1\n\n"
    sound = "def k(x):\n    second = h(x)\n    return second + 2\n"
    assert _removed(sound + "\n" + broken, "python", "body") == {"second = h(x)\n    return second + 2"}


def test_unknown_languages_have_no_pieces() -> None:
    assert pieces(PYTHON, "klingon", random.Random(1)) == []


def test_headers_are_c_or_cpp_by_their_text() -> None:
    assert header_language(C) == "c"
    assert header_language(CPP) == "cpp"


def test_items_put_together_are_the_files(sources: Path) -> None:
    (sources / "crlf.py").write_bytes(PYTHON.replace("\n", "\r\n").encode())
    (sources / "accents.py").write_text(PYTHON.replace("Shelf", "Étagère"), encoding="utf-8")
    (sources / "emoji.js").write_text(SOURCES["shelf.js"][1].replace("negative", "😀"), encoding="utf-8")
    items = sample_items(sources, 200, 1, "shelf")
    assert len(items) > 50
    for item in items:
        name = item.path.removeprefix("shelf/")
        original = (sources / name).read_bytes().decode().replace("\r\n", "\n")
        assert item.before + item.removed + item.after == original == item.original
    assert {"shelf/crlf.py", "shelf/accents.py", "shelf/emoji.js"} <= {item.path for item in items}
    assert {item.language for item in items} == {language for language, _ in SOURCES.values()}
    assert [item.index for item in items] == list(range(len(items)))


def test_kinds_are_balanced_and_files_differ(sources: Path) -> None:
    items = sample_items(sources, len(SOURCES), 5, "shelf")
    assert len({item.path for item in items}) == len(items) == len(SOURCES)
    counts = Counter(item.kind for item in items)
    assert len(counts) == len(KINDS)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_the_same_seed_gives_the_same_items_in_random_order(sources: Path) -> None:
    items = sample_items(sources, 20, 1, "shelf")
    assert sample_items(sources, 20, 1, "shelf") == items
    assert sample_items(sources, 20, 2, "shelf") != items
    assert [KINDS.index(item.kind) for item in items] != sorted(KINDS.index(item.kind) for item in items)


def test_no_two_items_overlap() -> None:
    by_file: dict[str, list[ReplayItem]] = {}
    for item in sample_items(ROOT / "bench", 150, 3, "bench"):
        by_file.setdefault(item.path, []).append(item)
    assert max(map(len, by_file.values())) > 1
    for items in by_file.values():
        spans = sorted((len(item.before), len(item.before) + len(item.removed)) for item in items)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_files_that_cannot_be_used_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(PYTHON)
    (tmp_path / "short.py").write_text(PYTHON[:300])
    (tmp_path / "long.py").write_text(PYTHON + "# more\n" * 10_000)
    (tmp_path / "latin.py").write_bytes(PYTHON.replace("Shelf", "Régal").encode("latin-1"))
    (tmp_path / "mac.py").write_bytes(PYTHON.replace("\n", "\r").encode())
    items = sample_items(tmp_path, 100, 1, "few")
    assert {item.path for item in items} == {"few/good.py"}
    assert 4 <= len(items) < 100


def test_longer_pieces_can_be_left_out(sources: Path) -> None:
    items = sample_items(sources, 16, 1, "shelf", max_chars=60)
    assert len(items) == 16
    assert max(len(item.removed) for item in items) <= 60
    assert {item.kind for item in items} == set(KINDS)


def test_a_folder_without_code_has_no_items(tmp_path: Path) -> None:
    assert sample_items(tmp_path, 10, 1, "empty") == []
