"""Typing into Emacs in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.editors.answers import asked, suggested
from tests.editors.emacs import ROOT, Emacs, lisp
from tests.editors.typing.plan import Plan
from tests.editors.typing.result import Result
from tests.editors.typing.terminal import HEIGHT, cores, in_words, pinned, type_as_planned

_RECORDED = ROOT / "tests" / "editors" / "recorded_server.py"
# Most keys come within a tenth of a second, Draftline's delay: hardly anything would ever be shown.
DELAY_SECONDS = 0.02
# What is typed is all there shall be.
_AFTER = f"(electric-indent-mode -1) (setq draftline-delay {DELAY_SECONDS})"
# Looks before anything is drawn: the text, the text with the suggestion in it, and how often.
_WITNESS = """
(defvar witness-painted 0) (defvar witness-seen nil)
(defun witness (&rest _)
  (with-current-buffer (window-buffer (selected-window))
    (when (overlayp lsp-inline-completion--overlay)
      (setq witness-painted (1+ witness-painted))
      (let ((drawn (concat
                    (buffer-substring-no-properties (point-min)
                                                    (overlay-start lsp-inline-completion--overlay))
                    (shown)
                    (buffer-substring-no-properties (overlay-end lsp-inline-completion--overlay)
                                                    (point-max)))))
        (unless (equal drawn (car witness-seen))
          (push drawn witness-seen))))))
(add-hook 'pre-redisplay-functions #'witness)
(defvar witness-messages (with-current-buffer (messages-buffer) (buffer-size)))
"""
_SAID = """(with-current-buffer (messages-buffer)
  (buffer-substring-no-properties (1+ witness-messages) (point-max)))"""


def type_into(
    binary: str,
    plan: Plan,
    server: Sequence[str],
    server_name: str,
    directory: Path,
    env: Mapping[str, str],
    seconds: float = 60,
) -> Result:
    """Type as planned, in ``directory``. The server may take ``seconds`` until it is ready.

    Raises:
        AssertionError: a character is not on screen ten seconds after its key.
    """
    folder = directory / "project"
    folder.mkdir()
    file = folder / "main.py"
    file.write_text(plan.above + "\n", encoding="utf-8")
    log = directory / "answers.jsonl"
    split = cores()
    command = [sys.executable, str(_RECORDED), str(log), *server]
    command = pinned(command, split[1]) if split else command
    before = f"(setq draftline-command (list {' '.join(map(lisp, command))}))"
    env = {"PYTHONPATH": str(ROOT), **env}
    editor = Emacs(
        binary, directory, before, _AFTER, file, env, cpus=split[0] if split else None, height=HEIGHT
    )
    try:
        editor.until('(equal (car draftline--status) "ready")', True, seconds)
        editor.keys("M->", "Left")
        editor.until("(= (point) (1- (point-max)))", True)
        editor.run(_WITNESS)
        milliseconds = type_as_planned(editor.terminal, plan)
        buffer = editor.text.removesuffix("\n")
        drawn = editor.lisp("(vconcat witness-seen)")
        known = suggested(log)
        right = {item.whole for item in known}
        return Result(
            editor=f"Emacs {editor.lisp('emacs-version')} in tmux",
            server=server_name,
            cores=in_words(split),
            wanted=plan.above + plan.typed,
            buffer=buffer,
            per_second=plan.per_second,
            milliseconds=milliseconds,
            requests=asked(log),
            suggestions=len(known),
            painted=editor.lisp("witness-painted"),
            stale=tuple(text.removeprefix(plan.above) for text in drawn if text not in right),
            messages=tuple(filter(None, map(str.strip, editor.lisp(_SAID).split("\n")))),
        )
    finally:
        editor.close()
