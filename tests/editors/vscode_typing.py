"""Types at a steady pace into VS Code with the real model, and looks at every frame.

``python -m tests.editors.vscode_typing --characters 300 --per-second 12``. Each frame must show exactly what
was typed up to some key, and a suggestion only if the server made it for that text. Reported is the time from
a key to the frame that shows its character.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.editors.answers import CLOSERS, Suggested, is_suggested, suggested
from tests.editors.vscode_page import TEXT, Shown, shown
from tests.editors.vscode_session import Session, package, session

BEGIN = '''"""Orders of a small shop."""

from dataclasses import dataclass, field


@dataclass
class Order:
    customer: str
    prices: list = field(default_factory=list)


def report(orders):
    """Lines of text about the orders, the dearest ones first."""'''
# Behind a line break comes the indentation that VS Code makes itself.
TYPED = """
    totals = {}
    for_all = [sum(order.prices) for order in orders]
    names = [order.customer for order in orders]
    for_all.sort(reverse=True)
    totals.update(zip(names, for_all))
    dearest = max(totals, key=totals.get)
    lines = ["customer: " + name for name in names]
    lines.append("dearest: " + dearest + " pays " + str(totals[dearest]))
    lines.append("sum: " + str(sum(for_all)))
    return lines"""
INDENT = "    "


@dataclass
class Report:
    """What was seen.

    Attributes:
        wrong: frames whose text is not what was typed up to some key, as they were.
        stale: frames whose suggestion the server did not make for their text.
        ms: for each character, from its key to the moment before the first frame with it is painted.
        errors: lines of the extension's log that tell of an error, and notifications.
    """

    characters: int = 0
    per_second: float = 0.0
    frames: int = 0
    frames_with_suggestion: int = 0
    suggestions: int = 0
    wrong: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Counts, and percentiles of the milliseconds."""
        counts = {name: value for name, value in asdict(self).items() if name != "ms"}
        if len(self.ms) > 1:
            cuts = statistics.quantiles(self.ms, n=100, method="inclusive")
            counts["keyToPaintedMs"] = {
                "p50": round(cuts[49]),
                "p95": round(cuts[94]),
                "max": round(max(self.ms)),
            }
        return counts


def keys_for(text: str) -> tuple[list[str], list[str]]:
    """Keys that type ``text``, and what stands in front of the cursor after each."""
    keys: list[str] = []
    states: list[str] = []
    done = ""
    while len(done) < len(text):
        char = text[len(done)]
        done += f"\n{INDENT}" if char == "\n" else char
        keys.append("Enter" if char == "\n" else char)
        states.append(done)
        assert text.startswith(done), "every line must be indented alike"
    return keys, states


def run(at: Session, characters: int, per_second: float) -> Report:
    """Type so many characters at the end of the file."""
    page = at.page
    keys, states = keys_for(TYPED)
    keys, states = keys[:characters], states[:characters]
    page.press("Control+End")
    page.evaluate("() => window.draftline.start()")
    page.type(keys, per_second)
    page.until(f"text => {TEXT}.startsWith(text)", BEGIN + states[-1])
    record = page.evaluate("() => window.draftline.record")
    pressed = [key["at"] for key in record["keys"] if key["key"] not in ("Shift", "Control")]
    report = Report(characters=len(keys), frames=len(record["frames"]))
    report.per_second = round(1000 * (len(pressed) - 1) / (pressed[-1] - pressed[0]), 1)
    known = suggested(at.answers)
    report.suggestions = len(known)
    assert len(pressed) == len(keys), f"{len(keys)} keys, {len(pressed)} arrived"
    _judge(report, record["frames"], pressed, states, known)
    log = at.code.extension_log().splitlines()
    report.errors = [line for line in log if "[error]" in line] + page.notices()
    return report


def _judge(
    report: Report,
    frames: list[dict[str, Any]],
    pressed: list[float],
    states: list[str],
    known: list[Suggested],
) -> None:
    done = -1
    painted: list[float] = []
    for frame in frames:
        seen = shown(frame)
        reached = _reached(seen, states, done)
        if reached is None:
            report.wrong.append("\n".join(seen.text[len(BEGIN.split("\n")) - 1 :]))
            continue
        painted += [frame["at"]] * (reached - done)
        done = reached
        if seen.ghost:
            report.frames_with_suggestion += 1
            if not is_suggested(seen, known):
                at = len(BEGIN.split("\n")) - 1
                near = [item for item in known if item.line == len(seen.text) - 1]
                report.stale.append(f"{seen.text[at:]} {seen.drawn[at:]} {seen.below}; made were {near}")
    report.ms = [round(at - key, 1) for at, key in zip(painted, pressed, strict=False)]
    if done != len(states) - 1:
        report.wrong.append(f"the end: {len(states) - 1 - done} characters are missing")


def _reached(seen: Shown, states: list[str], done: int) -> int | None:
    """The key up to which the text was typed, at least ``done``; None for a text that was never typed."""
    text = "\n".join(seen.text)
    for index in range(done, len(states)):
        state = BEGIN + (states[index] if index >= 0 else "")
        if text.startswith(state) and not text[len(state) :].strip(CLOSERS):
            return index
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--characters", type=int, default=300)
    parser.add_argument("--per-second", type=float, default=12.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, session(Path(home), package(), BEGIN) as at:
        report = run(at, arguments.characters, arguments.per_second)
    print(json.dumps(report.summary(), indent=2))
    return 1 if report.wrong or report.stale or report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
