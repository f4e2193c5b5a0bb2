"""Typing into an editor in a terminal, with a look at the screen whenever it changes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from tests.editors.terminal import Screen, Terminal
from tests.editors.typing.plan import Plan

HEIGHT = 40
PATIENCE_SECONDS = 10.0


def cores() -> tuple[set[int], set[int]] | None:
    """One core for the editor and the others for the server; None if there are not two."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    all_cores = sorted(os.sched_getaffinity(0))
    return ({all_cores[0]}, set(all_cores[1:])) if len(all_cores) > 1 else None


def in_words(split: tuple[set[int], set[int]] | None) -> str:
    """What `cores` says."""
    return f"editor on core {min(split[0])}, server on {len(split[1])} others" if split else "all on one core"


def pinned(command: Sequence[str], cpus: set[int]) -> list[str]:
    """The command for these cores only."""
    code = f"import os, sys; os.sched_setaffinity(0, {cpus}); os.execvp(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code, *command]


def type_as_planned(terminal: Terminal, plan: Plan) -> tuple[float, ...]:
    """Type with the cursor at the end of ``plan.above``; milliseconds until each character is on screen.

    Keys come when they are due, whether the one before is on screen or not.

    Raises:
        AssertionError: a character is not on screen ten seconds after its key.
    """
    above = plan.above.split("\n")
    screen = terminal.screen()
    # Some editors have a margin, or a line of their own on top.
    left, top = screen.x - len(above[-1]), screen.y - len(above) + 1
    sent: list[float] = []
    taken: list[float] = []
    due = time.perf_counter()
    while len(taken) < len(plan.keys):
        now = time.perf_counter()
        if len(sent) < len(plan.keys) and now >= due:
            terminal.type(plan.keys[len(sent)])
            sent.append(now)
            due += plan.waits[len(sent) - 1]
        wait = due - time.perf_counter() if len(sent) < len(plan.keys) else 1.0
        if not terminal.wait(max(0.0, min(wait, 1.0))) or len(sent) == len(taken):
            if len(sent) > len(taken) and now - sent[len(taken)] > PATIENCE_SECONDS:
                missing = plan.keys[len(taken)]
                raise AssertionError(f"{missing!r} is not on screen:\n{terminal.screen().text}")
            continue
        screen = terminal.screen()
        count = _typed_on_screen(screen, left, top, plan, len(sent), len(taken))
        now = time.perf_counter()
        taken += [now - at for at in sent[len(taken) : count]]
    return tuple(1000 * each for each in taken)


def _typed_on_screen(screen: Screen, left: int, top: int, plan: Plan, sent: int, shown: int) -> int:
    """How many typed characters the screen shows, at least ``shown``; all of it must be right."""
    rows = [row[left:] for row in screen.lines[top : screen.y + 1]]
    for count in range(sent, shown, -1):
        lines = (plan.above + plan.states[count - 1]).split("\n")
        if (screen.y - top, screen.x - left) != (len(lines) - 1, len(lines[-1])):
            continue
        last = rows[-1].ljust(len(lines[-1]))[: len(lines[-1])]
        if last == lines[-1] and rows[:-1] == [line.rstrip() for line in lines[:-1]]:
            return count
    return shown
