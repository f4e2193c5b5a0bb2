"""editors/emacs in a real Emacs with lsp-mode: suggestions, edits, and typing on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.editors.conftest import FAKE, SCRIPTED
from tests.editors.emacs import ROOT, Emacs, found, lisp
from tests.editors.real_weights import linked_home

EMACS, _REASON = found()

pytestmark = [
    pytest.mark.editor,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not EMACS, reason=_REASON),
]

ANSWER = "total = sum(prices)\n    return total"
START = "def f(prices):\n    \n"
WHOLE = "def f(prices):\n    total = sum(prices)\n    return total\n"
BUFFER = "(buffer-substring-no-properties (point-min) (point-max))"
READY = '(equal (car draftline--status) "ready")'
REAL = (sys.executable, "-m", "lsp_server", "lsp")

StartEmacs = Callable[..., Emacs]


@pytest.fixture
def emacs(tmp_path: Path) -> Iterator[StartEmacs]:
    """Starts Emacsen: ``emacs("text", server=FAKE, before="lisp", FAKE_ANSWER="…")``."""
    running: list[Emacs] = []

    def start(
        text: str, *, server: tuple[str, ...] = FAKE, before: str = "", after: str = "", **env: str
    ) -> Emacs:
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "main.py").write_text(text, encoding="utf-8")
        command = " ".join(map(lisp, server))
        before = f"(setq draftline-command (list {command}))\n{before}"
        editor = Emacs(EMACS, tmp_path, before, after, folder / "main.py", env)
        running.append(editor)
        editor.until(READY, True, 120)
        return editor

    yield start
    for editor in running:
        editor.close()


def opened(emacs: StartEmacs, **more: str) -> Emacs:
    """At the end of the second line, behind the first letter, with the rest of it on screen."""
    editor = emacs(START, FAKE_ANSWER=ANSWER[1:], **more)
    editor.keys("C-n", "C-e", "t")
    # The letter before the cursor is part of what lsp-mode draws.
    editor.until("(shown)", ANSWER)
    return editor


def test_a_suggestion_is_shown_and_taken(emacs: StartEmacs) -> None:
    editor = opened(emacs)
    # Behind a margin of lsp-mode's.
    rows = [row.strip() for row in editor.screen().splitlines()]
    at = rows.index("def f(prices):")
    assert rows[at + 1 : at + 3] == ["total = sum(prices)", "return total"]
    editor.keys("Tab")
    editor.until("(count-lines (point-min) (point-max))", 3)
    assert editor.text == WHOLE
    # The server was told which one it was.
    ask = '(with-lsp-workspace (draftline--workspace) (lsp-request "draftline/statistics" nil))'
    editor.until(f"(lsp-get (lsp-get {ask} :counts) :acceptedWhole)", 1)


def test_typing_on_takes_it_off_and_keys_are_what_they_were(emacs: StartEmacs) -> None:
    editor = opened(emacs)
    editor.run("(setq lsp-inline-completion-inhibit-predicates '(always))")
    editor.keys("C-p")
    editor.until("(line-number-at-pos)", 1)
    assert editor.lisp("(shown)") is None
    assert editor.text == START.replace("    ", "    t")
    # Without a suggestion the key is the mode's own.
    assert editor.lisp('(symbol-name (key-binding (kbd "TAB")))') == "indent-for-tab-command"


def test_choosing_among_several(emacs: StartEmacs) -> None:
    editor = emacs("\n", server=SCRIPTED)
    editor.run("(setq lsp-inline-completion-inhibit-predicates '(always))")
    editor.type("ab")
    editor.until("(buffer-substring 1 3)", "ab")
    editor.keys("M-x", "lsp-inline-completion-display", "Enter")
    editor.until("(shown)", "b<ab>")
    editor.keys("M-n")
    editor.until("(shown)", "b[ab]")
    editor.keys("M-p", "M-p")
    editor.until("(shown)", "b(ab)")
    editor.keys("Tab")
    editor.until("(buffer-substring-no-properties 1 7)", "ab(ab)")


def test_settings_reach_the_server(emacs: StartEmacs) -> None:
    off = '(setq draftline-settings \'(:disabledLanguages ["python"]))'
    editor = emacs(START, FAKE_ANSWER=ANSWER, before=off)
    editor.keys("C-n", "C-e", "t")
    editor.until("(nth 2 draftline--status)", "disabled")
    assert editor.lisp("(shown)") is None


# Looks before anything is drawn: a suggestion on screen must be one for the text before the cursor.
WATCH = """
(defvar seen 0) (defvar wrong nil)
(defun watch (&rest _)
  (with-current-buffer (window-buffer (selected-window))
    (when (overlayp lsp-inline-completion--overlay)
      (setq seen (1+ seen))
      (let* ((start lsp-inline-completion--start-point)
             (made (buffer-substring-no-properties (line-beginning-position) start))
             (drawn (shown)))
        (unless (and (string-suffix-p (concat "<" made ">") drawn)
                     (= start (line-end-position))
                     (<= 0 (- start (point)) 1))
          (push (list made drawn (point)) wrong))))))
(add-hook 'pre-redisplay-functions #'watch)
"""


def test_nothing_is_lost_and_nothing_stale_is_shown(emacs: StartEmacs) -> None:
    # As fast as a fast typist, pauses in which suggestions come, and answers that take longer than a key.
    editor = emacs("", server=SCRIPTED, after=WATCH + "(setq draftline-delay 0.02)", SUGGEST_SECONDS="0.03")
    line = "".join(f"name_{at} = call(one, two) + {at * 7}; " for at in range(11))[:300]
    assert len(line) == 300
    for at, char in enumerate(line):
        editor.type(char)
        time.sleep(0.25 if at % 25 == 24 else 0.083)
    editor.until(BUFFER, line)
    editor.until("(shown)", f"{line[-1]}<{line}>")
    assert editor.lisp("wrong") is None
    assert editor.lisp("seen") > 10


OLD = "def total(prices):\n    s = 0\n    for p in prices:\n        s = s + p\n    return s\n"
NEW = OLD.replace("s = s + p", "s += p")


@pytest.mark.parametrize("way", ["code action", "command"])
def test_edits(emacs: StartEmacs, way: str) -> None:
    editor = emacs(OLD, FAKE_ANSWER=NEW + "```\nDone.")
    editor.keys("C-Space", "M->")
    if way == "code action":
        editor.keys("M-x", "lsp-execute-code-action", "Enter")
        editor.until("(minibufferp)", True)
        editor.type("Draftline: Simplify")
        editor.keys("Enter")
    else:
        editor.keys("M-x", "draftline-edit", "Enter")
        editor.type("use an augmented assignment")
        editor.keys("Enter")
    editor.until(BUFFER, NEW)
    editor.keys("C-/")
    editor.until(BUFFER, OLD)


@pytest.mark.model
def test_the_real_model(emacs: StartEmacs, real_model: str, tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(ROOT), "DRAFTLINE_HOME": str(linked_home(tmp_path))}
    editor = emacs("def add(a, b):\n    \n", server=REAL, **env)
    editor.keys("C-n", "C-e")
    editor.type("return ")
    drawn = editor.until("(shown)", seconds=90)
    assert drawn.startswith(" a + b")
    editor.keys("Tab")
    editor.until(BUFFER, f"def add(a, b):\n    return{drawn}\n")
