"""The replay against servers that are right, wrong, slow, silent or broken: the figures must show which."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.base import PeerFailed
from bench.peers.lsp_editor import LspEditor, Timeouts
from bench.records import Item, Key
from bench.replay.items import ReplayItem
from bench.replay.replay import Replay
from bench.replay.typist import Manner, Pace, Typist, end_of, moved, replaced
from bench.report.latency import Figures, figures

ODD = Path(__file__).with_name("odd_server.py")
ITEM = ReplayItem(
    0,
    "block",
    "pkg/m.py",
    "python",
    "def f(xs):\n    for x in xs:\n        ",
    "total += x",
    "\n    return é\n",
)


def editor(tmp_path: Path, mode: str, item: ReplayItem = ITEM, answer: float = 10.0) -> LspEditor:
    original = tmp_path / "original.txt"
    original.write_text(item.original, encoding="utf-8")
    command = [sys.executable, str(ODD), str(original), mode]
    return LspEditor(mode, command, {}, timeouts=Timeouts(20.0, answer))


async def play(
    editors: list[LspEditor], manner: Manner, items: list[ReplayItem]
) -> tuple[list[Key], list[Item], Replay]:
    records: list[Key | Item] = []
    replay = Replay(editors, manner, records.append)
    for one in editors:
        await one.start()
    try:
        await replay.run(items, lambda: None)
    finally:
        for one in editors:
            await one.stop()
    keys = [record for record in records if isinstance(record, Key)]
    return keys, [record for record in records if isinstance(record, Item)], replay


def measure(
    tmp_path: Path, mode: str, manner: Manner | None = None, answer: float = 10.0
) -> tuple[Figures, list[Key], list[Item]]:
    manner = manner or Manner()
    keys, items, replay = asyncio.run(play([editor(tmp_path, mode, answer=answer)], manner, [ITEM]))
    assert not replay.failures
    return figures(keys, items), keys, items


def seed_of_a_user(item: ReplayItem, takes: bool) -> int:
    """The first seed with which the user takes a whole suggestion, or types along it, at once."""

    def first_choice(seed: int) -> str:
        unused = LspEditor("unused", [], {})
        return Typist(unused, item, Manner(seed=seed), lambda key: None)._wanted(item.removed)

    return next(seed for seed in range(100) if bool(first_choice(seed)) is takes)


def test_right_answers_are_taken(tmp_path: Path) -> None:
    seen, keys, items = measure(tmp_path, "right", Manner(seed=seed_of_a_user(ITEM, takes=True)))
    assert seen.right == 1.0 and seen.restored == 1.0 and seen.timeouts == 0.0
    (item,) = items
    assert item.accepts == 1 and item.accepted_chars == len(ITEM.removed) and item.typed_chars == 0
    assert [key.action for key in keys] == ["move", "accept"]
    assert keys[0].text == ITEM.removed and keys[0].right_chars == len(ITEM.removed)
    assert (keys[0].line, keys[0].column, keys[0].position) == (3, 9, len(ITEM.before))
    assert keys[0].ms is not None and keys[0].ms > 0


def test_some_right_answers_are_typed_along(tmp_path: Path) -> None:
    seed = seed_of_a_user(ITEM, takes=False)
    _, keys, (item,) = measure(tmp_path, "right", Manner(seed=seed))
    assert item.restored and item.typed_chars >= len(ITEM.removed) - 1
    assert sum(key.along for key in keys) >= len(ITEM.removed) - 3


def test_wrong_answers_are_counted_and_not_taken(tmp_path: Path) -> None:
    seen, _, (item,) = measure(tmp_path, "wrong")
    assert seen.shown == 1.0 and seen.right == 0.0 and seen.right_char == 0.0
    assert item.accepts == 0 and item.typed_chars == len(ITEM.removed) and item.restored


def test_slow_answers_are_slow(tmp_path: Path) -> None:
    right, _, _ = measure(tmp_path, "right", Manner(accept="none"))
    slow, _, _ = measure(tmp_path, "slow", Manner(accept="none"))
    assert slow.within[200] == 0.0 and right.within[200] is not None and right.within[200] > 0.5
    assert slow.answers.p50 is not None and slow.answers.p50 >= 250.0


def test_silence_is_a_timeout(tmp_path: Path) -> None:
    seen, keys, (item,) = measure(tmp_path, "silent", answer=0.05)
    assert seen.timeouts == 1.0 and seen.answered == 0.0 and seen.within[200] == 0.0
    assert all(key.ms is None and not key.text for key in keys) and item.restored


def test_errors_are_no_answers(tmp_path: Path) -> None:
    seen, keys, _ = measure(tmp_path, "error")
    assert seen.errors == 1.0 and seen.answered == 0.0
    assert "no answer from here" in keys[0].reason


@pytest.mark.parametrize(("pace", "outcome"), [("fast", "superseded"), ("human", "shown")])
def test_a_slow_server_and_a_user_who_does_not_wait(tmp_path: Path, pace: Pace, outcome: str) -> None:
    _, keys, (item,) = measure(tmp_path, "slow", Manner(pace, "none", 3))
    assert item.restored
    assert outcome in {key.outcome for key in keys}
    if pace == "fast":
        assert item.accepts == 0 and sum(key.outcome == "superseded" for key in keys) >= len(keys) - 2


def test_a_user_takes_what_came_in_time(tmp_path: Path) -> None:
    _, _, (item,) = measure(tmp_path, "right", Manner("human", "whole", 1))
    assert item.restored and item.accepted_chars > 0


def test_words_and_lines(tmp_path: Path) -> None:
    _, _, (item,) = measure(tmp_path, "right", Manner(accept="word", seed=1))
    assert item.restored and item.accepts > 0 and item.accepted_chars < len(ITEM.removed)
    longer = replace(ITEM, removed="total += x\n        if total > 9:\n            break")
    one = editor(tmp_path, "right", longer)
    _, (item,), _ = asyncio.run(
        play([one], Manner("await", "line", seed_of_a_user(longer, takes=True)), [longer])
    )
    assert item.restored and item.accepted_chars > 0


def test_the_same_seed_gives_the_same_keys_and_texts(tmp_path: Path) -> None:
    def run() -> list[tuple[object, ...]]:
        _, keys, _ = measure(tmp_path, "right", Manner(accept="word", seed=5))
        return [(key.index, key.action, key.position, key.text, key.along) for key in keys]

    assert run() == run()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    broken = LspEditor("broken", [sys.executable, "-c", "import sys; sys.exit('out of cheese')"], {})
    with pytest.raises(PeerFailed, match="out of cheese"):
        asyncio.run(play([broken], Manner(), [ITEM]))


def test_a_system_that_fails_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    class Falling(LspEditor):
        async def open(self, path: str, language: str, text: str) -> None:
            raise PeerFailed("fell over")

    falling = Falling("falling", editor(tmp_path, "right")._command, {})
    items = [replace(ITEM, index=index) for index in range(2)]
    _, records, replay = asyncio.run(play([falling, editor(tmp_path, "right")], Manner(), items))
    assert replay.failures == {"falling": "fell over"}
    assert [(record.system, record.item) for record in records] == [("right", 0), ("right", 1)]


def test_places() -> None:
    assert end_of("a\nbc") == (1, 2)
    assert moved((1, 2), "x") == (1, 3) and moved((1, 2), "x\ny") == (2, 1)
    assert replaced("ab\ncd\nef", (0, 1), (2, 1), "-\n") == "a-\nf"
