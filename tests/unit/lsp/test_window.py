"""The window: within its budget, begins at lines, and stays where it begins while the user types."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.context.window import Budget, choose
from lsp_server.documents.text import Point, Snapshot


def words(line: str) -> int:
    return len(line) // 4 + 1


def test_a_small_file_is_taken_whole() -> None:
    snapshot = Snapshot.of("one\r\ntwo\r\nthree four\r\nfive")
    window = choose(snapshot, Point(2, 6), Budget.split(1000), words)
    assert (window.above, window.head, window.suffix) == ("one\ntwo\n", "three ", "four\nfive")
    assert (window.first_line, window.stop_line) == (0, 4)


def test_empty_file() -> None:
    window = choose(Snapshot.of(""), Point(0, 0), Budget.split(100), words)
    assert (window.above, window.head, window.suffix) == ("", "", "")


@given(st.lists(st.integers(0, 90), min_size=1, max_size=200), st.data())
def test_window_fits_and_is_made_of_whole_lines(lengths: list[int], data: st.DataObject) -> None:
    lines = ["x" * length for length in lengths]
    snapshot = Snapshot.of("\n".join(lines))
    line = data.draw(st.integers(0, len(lines) - 1))
    cursor = Point(line, data.draw(st.integers(0, len(lines[line]))))
    budget = Budget.split(data.draw(st.integers(40, 800)))
    window = choose(snapshot, cursor, budget, words)
    assert window.above == snapshot.lf(window.first_line, line)
    above = sum(words(text + "\n") for text in lines[window.first_line : line])
    assert window.first_line == line or above + words(window.head) <= budget.prefix
    if window.first_line > 0 and window.head == lines[line][: cursor.column] and above:
        # What is given away to move in blocks is about a quarter.
        assert window.first_line <= line


def test_the_start_stays_while_typing() -> None:
    lines = [f"    value_{number} = compute({number})" for number in range(2000)]
    starts = []
    for extra in range(128):
        text = "\n".join(lines[:1000] + ["typed line of text"] * extra + ["x"] + lines[1000:])
        window = choose(Snapshot.of(text), Point(1000 + extra, 1), Budget.split(1600), words)
        starts.append(window.first_line)
    moves = sum(a != b for a, b in itertools.pairwise(starts))
    assert 1 <= moves <= 8
    assert all(a <= b for a, b in itertools.pairwise(starts))


def test_the_start_does_not_depend_on_the_current_line() -> None:
    lines = [f"    value_{number} = compute({number})" for number in range(2000)]
    typed = "    result = some_function(argument)"
    starts = set()
    for length in range(len(typed)):
        text = "\n".join([*lines[:1000], typed[:length], *lines[1000:]])
        starts.add(choose(Snapshot.of(text), Point(1000, length), Budget.split(1600), words).first_line)
    assert len(starts) <= 2


def test_half_a_word_that_takes_more_tokens_than_the_whole_moves_nothing() -> None:
    lines = [f"    value_{number} = compute({number})" for number in range(400)]

    def count(line: str) -> int:
        return len(line) // 4 + 1 if line.endswith(("\n", " ")) else len(line) // 2 + 1

    typed = "    total = some_function(first_argument, second)"
    for size in range(700, 800):
        starts = []
        for length in range(len(typed) + 1):
            text = "\n".join([*lines[:300], typed[:length], *lines[300:]])
            snapshot = Snapshot.of(text)
            starts.append(choose(snapshot, Point(300, length), Budget.split(size), count).first_line)
        assert starts == sorted(starts), "the start went back"


def test_two_megabytes_cost_little_and_one_long_line_is_bounded() -> None:
    text = "value = compute(1234567890)\n" * 75_000
    snapshot = Snapshot.of(text)
    looked_at = 0

    def count(line: str) -> int:
        nonlocal looked_at
        looked_at += len(line)
        return words(line)

    window = choose(snapshot, Point(40_000, 5), Budget.split(4000), count)
    assert looked_at < 30_000
    assert len(window.above) > 5_000

    line = "x" * 2_000_000
    window = choose(Snapshot.of(line), Point(0, 1_000_000), Budget.split(400), words)
    assert 300 <= len(window.head) <= 600
    assert len(window.suffix) <= 200
    assert line[:1_000_000].endswith(window.head)


def test_suffix_is_bounded_by_its_own_limit() -> None:
    budget = Budget.split(4000, max_suffix=100)
    assert (budget.prefix, budget.suffix) == (3900, 100), "what the suffix may not take is the prefix's"
    assert Budget.split(4000) == Budget(3000, 1000)
    snapshot = Snapshot.of("a\n" * 1000)
    window = choose(snapshot, Point(0, 0), budget, words)
    assert window.stop_line <= 101
