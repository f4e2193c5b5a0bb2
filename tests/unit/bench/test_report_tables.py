"""The whole report as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.journal import load
from bench.report.document import BEGIN, END, NoMarkers, inside, replaced, whole
from bench.report.tables import markdown
from tests.unit.bench.made_up_records import answer, call, compared, item, key, run

GOLDEN = Path(__file__).parents[2] / "golden" / "bench"


def test_golden() -> None:
    """After a wanted change: draftline bench report tests/golden/bench/results.jsonl > .../report.md"""
    assert markdown(load([GOLDEN / "results.jsonl"])) == (GOLDEN / "report.md").read_text(encoding="utf-8")


def test_each_run_says_what_was_measured_on_what() -> None:
    text = markdown([run(compared(), bench="exactness", options={"count": 3, "seed": None})])
    assert "## 1. exactness, 2026-01-02T03:04:05Z" in text
    assert "- command: `draftline bench exactness`" in text
    assert "- machine: cpu made up; cores 2" in text
    assert "- options: count 3\n" in text
    assert "- peer: build b1" in text


def test_tables_without_records_are_left_out() -> None:
    def headings(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith("###")]

    assert headings(markdown([run()])) == []
    assert "Nothing was measured." in markdown([run()])
    assert headings(markdown([run(call())])) == ["### Decoding by set, system and mode"]
    assert headings(markdown([run(answer())])) == ["### Answers by set, system and variant"]
    assert all("Keys" in heading for heading in headings(markdown([run(key(), item())])))


def test_where_draftline_is_behind_has_every_lag_largest_first() -> None:
    first = run(
        *(record for n in range(3) for record in (key(item=n, ms=15.0), item(item=n))),
        *(record for n in range(3) for record in (key("peer", n, ms=10.0), item("peer", n))),
    )
    second = run(
        call(mode="auto", decode_ms=100.0, first_ms=300.0),
        call("peer", "plain", decode_ms=200.0, first_ms=100.0),
        bench="speculation",
        name="b",
    )
    lines = [line for line in _behind(markdown([first, second])) if line.startswith("- ")]
    assert len(lines) == 3
    assert lines[0].startswith("- 2. speculation, 2026-01-02T03:04:05Z: first token on fim: 300 ms, peer 100")
    assert "(0.33x; not clear)" in lines[0]
    assert {line.split(": ")[1] for line in lines[1:]} == {"all answers", "answers of the model"}
    assert "(0.67x, interval 0.67x to 0.67x)" in lines[1]


def test_nowhere_behind_is_said_and_without_peers_nothing() -> None:
    ahead = run(key(), item(), key("peer", ms=100.0), item("peer"))
    assert any(line.startswith("In none of the ") for line in _behind(markdown([ahead])))
    alone = run(key(), item(), key("draftline no cache", ms=1.0), item("draftline no cache"))
    assert _behind(markdown([alone])) == []


def test_quick_runs_are_marked() -> None:
    assert "**Warning:** a quick run" in markdown([run(key(), quick=True)])
    assert "Warning" not in markdown([run(key())])


def test_markers() -> None:
    text = f"# Mine\n\n{BEGIN}\nold\n{END}\n\nmore\n"
    changed = replaced(text, "new\n")
    assert changed == f"# Mine\n\n{BEGIN}\nnew\n{END}\n\nmore\n"
    assert inside(changed) == "new\n"
    assert replaced(changed, "new\n") == changed
    assert inside(whole("tables\n")) == "tables\n"


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_no_markers(text: str) -> None:
    with pytest.raises(NoMarkers):
        replaced(text, "new\n")


def _behind(text: str) -> list[str]:
    _, heading, section = text.partition("## Where Draftline is behind\n")
    return section.splitlines() if heading else []
