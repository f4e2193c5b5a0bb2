"""Typing into VS Code, with a look at every frame."""

from __future__ import annotations

from collections.abc import Sequence

from tests.editors import vscode
from tests.editors.answers import CLOSERS, Suggested, asked, is_suggested, suggested
from tests.editors.typing.plan import Plan
from tests.editors.typing.result import Result
from tests.editors.vscode_page import TEXT, Shown, shown
from tests.editors.vscode_session import Session


def type_into(at: Session, plan: Plan, server_name: str) -> Result:
    """Type as planned at the end of the file, which has ``plan.above`` in it.

    Each frame must show what was typed up to some key, and a suggestion only if the server made it for that
    text. Milliseconds are from a key to the moment before the first frame with its character is painted.
    The editor indents new lines and closes brackets by itself, as it does by default.

    Raises:
        PageError: not all characters come.
    """
    page = at.page
    page.press("Control+End")
    page.evaluate("() => window.draftline.start()")
    page.type(["Enter" if key == "\n" else key for key in plan.keys], waits=plan.waits)
    wanted = plan.above + plan.typed
    page.until(f"text => {TEXT}.startsWith(text)", wanted)
    record = page.evaluate("() => window.draftline.record")
    pressed = [key["at"] for key in record["keys"] if key["key"] not in ("Shift", "Control")]
    assert len(pressed) == len(plan.keys), f"{len(plan.keys)} keys, {len(pressed)} arrived"
    known = suggested(at.answers)
    frames = [shown(frame) for frame in record["frames"]]
    reached, stale = _judge(frames, plan, known)
    painted = [
        frame["at"] for frame, more in zip(record["frames"], reached, strict=True) for _ in range(more)
    ]
    log = at.code.extension_log().splitlines()
    buffer = "\n".join(page.look().text)
    return Result(
        editor=f"VS Code {vscode.version()} in Chromium",
        server=server_name,
        cores="all on the same cores",
        wanted=wanted,
        # What the editor itself has closed and was not typed yet is still behind the cursor.
        buffer=wanted if buffer.rstrip(CLOSERS) == wanted.rstrip(CLOSERS) else buffer,
        per_second=plan.per_second,
        milliseconds=tuple(round(at - key, 1) for at, key in zip(painted, pressed, strict=False)),
        requests=asked(at.answers),
        suggestions=len(known),
        painted=sum(frame.ghost for frame in frames),
        stale=tuple(stale),
        messages=(*(line for line in log if "[error]" in line), *page.notices()),
    )


def _judge(frames: Sequence[Shown], plan: Plan, known: Sequence[Suggested]) -> tuple[list[int], list[str]]:
    """How many more keys each frame shows than those before it, and what is wrong with frames."""
    top = len(plan.above.split("\n")) - 1
    done = 0
    more: list[int] = []
    wrong: list[str] = []
    for seen in frames:
        reached = _reached(seen, plan, done)
        if reached is None:
            wrong.append("never typed was:\n" + "\n".join(seen.text[top:]))
            more.append(0)
            continue
        more.append(reached - done)
        done = reached
        if seen.ghost and not is_suggested(seen, known):
            near = {item.text for item in known if item.line == len(seen.text) - 1}
            changed = [drawn for text, drawn in zip(seen.text, seen.drawn, strict=True) if text != drawn]
            wrong.append(f"{changed} {seen.below} in {seen.text[-1]!r}; made were {sorted(near)}")
    return more, wrong


def _reached(seen: Shown, plan: Plan, done: int) -> int | None:
    """How many keys a frame shows, at least ``done``; None for a text that was never typed."""
    text = "\n".join(seen.text)
    for count in range(done, len(plan.keys) + 1):
        state = plan.above + (plan.states[count - 1] if count else "")
        if text.startswith(state) and not text[len(state) :].strip(CLOSERS):
            return count
    return None
