"""The packaged extension in a real VS Code with the real 0.5B: keys are pressed, what is drawn is looked at.

With DRAFTLINE_SCREENSHOTS set, pictures of the steps are saved in that folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.answers import answers, is_suggested, suggested
from tests.editors.typing.plan import ABOVE, make_plan
from tests.editors.typing.result import table
from tests.editors.typing.vscode import type_into
from tests.editors.vscode import missing
from tests.editors.vscode_page import PATIENCE_SECONDS, Page
from tests.editors.vscode_session import Session, session

pytestmark = [
    pytest.mark.editor,
    pytest.mark.model,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing()), reason=missing() or "all is there"),
]

SHOP = '''"""Prices of a shop."""


def total(prices):
    s = 0
    for p in prices:
        s = s + p
    return s


def average(prices):
    """The mean of the prices."""
    return'''
EDITED = SHOP.replace(
    "    s = 0\n    for p in prices:\n        s = s + p\n    return s\n", "    return sum(prices)\n"
)
NO_LENS = "() => !document.querySelector('.codelens-decoration a')"
LAST = len(SHOP.split("\n")) - 1


@pytest.fixture
def shop(real_model: str, vsix: Path, tmp_path: Path) -> Iterator[Session]:
    with session(tmp_path, vsix, SHOP) as at:
        yield at


@pytest.fixture
def orders(real_model: str, vsix: Path, tmp_path: Path) -> Iterator[Session]:
    with session(tmp_path, vsix, ABOVE, "orders.py") as at:
        yield at


def _picture(page: Page, name: str) -> None:
    folder = os.environ.get("DRAFTLINE_SCREENSHOTS")
    if folder:
        page.screenshot(Path(folder) / f"{name}.png")


def test_suggestions_edits_and_the_switch(shop: Session) -> None:
    page = shop.page
    _suggestion_taken_and_undone(shop)
    _word_taken(page)
    _edit_rejected_and_accepted(page)
    _switched_off(shop)
    assert "[error]" not in shop.code.extension_log()


def _suggestion_taken_and_undone(shop: Session) -> None:
    page = shop.page
    page.press("Control+End")
    page.type(" ")
    seen = page.until_ghost()
    assert seen.text[LAST] == "    return "
    assert is_suggested(seen, suggested(shop.answers)), seen
    _picture(page, "suggestion")
    page.press("Tab")
    page.until_text("\n".join([*seen.drawn, *seen.below]))
    _picture(page, "accepted")
    page.press("Control+z")
    page.until_text(SHOP + " ")


def _word_taken(page: Page) -> None:
    page.press("Alt+Backslash")  # asks by hand
    seen = page.until_ghost()
    page.press("Control+ArrowRight")
    page.until("n => window.draftline.look().lines[n].text.length > 11", LAST)
    word = page.look()
    assert word.drawn[LAST] == seen.drawn[LAST], "the rest of the suggestion stays"
    assert len("    return ") < len(word.text[LAST]) < len(seen.drawn[LAST])
    assert seen.drawn[LAST].startswith(word.text[LAST])
    page.press("Control+z")
    page.until_text(SHOP + " ")
    page.press("Backspace")
    page.until_text(SHOP)


def _edit_rejected_and_accepted(page: Page) -> None:
    _ask_for_edit(page)
    assert "\n".join(page.look().text) == SHOP, "nothing is applied unasked"
    _picture(page, "edit")
    page.press("Escape")
    page.until(NO_LENS)
    page.until_text(SHOP)
    _ask_for_edit(page)
    page.press("Control+Enter")
    page.until_text(EDITED)
    page.press("Control+z")
    page.until_text(SHOP)
    page.until(NO_LENS)


def _ask_for_edit(page: Page) -> None:
    page.press("Control+Home", *["ArrowDown"] * 3, *["Shift+ArrowDown"] * 5, "Control+Alt+e")
    page.until("() => document.querySelector('.quick-input-widget .quick-input-box input:focus')")
    page.type("Use sum() instead of the loop.", per_second=200)
    page.press("Enter")
    page.until("() => document.querySelector('.codelens-decoration a')?.textContent.includes('Accept')")
    page.until("() => document.querySelector('.monaco-editor textarea:focus, .native-edit-context:focus')")


def _switched_off(shop: Session) -> None:
    page = shop.page
    page.command("Draftline: Switch Suggestions On or Off")
    page.until_icon("circle-slash")
    _picture(page, "off")
    page.press("Control+End")
    before = len(answers(shop.answers))
    page.type(" ")
    page.until_text(SHOP + " ")
    end = time.monotonic() + PATIENCE_SECONDS
    while len(answers(shop.answers)) == before:
        assert time.monotonic() < end, "the server did not answer"
        time.sleep(0.1)
    assert answers(shop.answers)[before:] == [[]]
    page.command("Draftline: Switch Suggestions On or Off")
    page.until_icon("sparkle")
    assert not page.look().ghost
    page.press("Backspace")
    page.type(" ")
    page.until_ghost()


def test_typing_fast(orders: Session) -> None:
    result = type_into(orders, make_plan(100, per_second=12, indents=True), "the default model")
    print(*table([result]), sep="\n")
    # Some ghost text must have been painted, else nothing was checked.
    assert result.faults() == []
    assert len(result.milliseconds) == 100
