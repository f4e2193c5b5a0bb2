"""How long a typist waits before a key.

Pauses are log-normal; their medians are in the range of Dhakal et al., "Observations on Typing from 136
Million Keystrokes" (CHI 2018), with longer ones before words and lines, as when code is written and not
copied.
"""

from __future__ import annotations

import math
import random
from typing import Literal

Pause = Literal[
    "letter",
    "word",
    "after punctuation",
    "line",
    "newline",
    "indentation",
    "notice",
    "backspace",
    "move",
    "move back",
    "edit above",
]

MEDIAN_MS: dict[Pause, float] = {
    "letter": 150.0,
    "word": 220.0,
    "after punctuation": 210.0,
    "line": 400.0,  # the first key of a line, behind its indentation
    "newline": 250.0,
    "indentation": 160.0,
    "notice": 350.0,  # a slip is seen
    "backspace": 130.0,
    "move": 1200.0,
    "move back": 900.0,
    "edit above": 2500.0,
}
SPREAD = 0.35  # standard deviation of the logarithm
SHORTEST_MS, LONGEST_MS = 30.0, 4000.0
# How often the typist stops to think, and for how long.
THINK_RATE_LINE, THINK_RATE_WORD = 0.12, 0.02
THINK_MS = (1000.0, 3000.0)


def pause_ms(before: Pause, generator: random.Random) -> float:
    """A pause in ms."""
    pause = MEDIAN_MS[before] * math.exp(generator.gauss(0.0, SPREAD))
    return min(max(pause, SHORTEST_MS), LONGEST_MS)


def typing_pause_ms(line: str, key: str, generator: random.Random) -> float:
    """The pause in ms before ``key`` is typed at the end of ``line``; sometimes long enough to think."""
    last = line[-1:]
    starts_word = key.isalnum() and not (last.isalnum() or last == "_")
    rate = 0.0
    if not line.strip():
        before: Pause = "line"
        rate = THINK_RATE_LINE
    elif starts_word:
        before = "word"
        rate = THINK_RATE_WORD
    else:
        before = "letter" if last.isalnum() or last in "_ \t" else "after punctuation"
    if generator.random() < rate:
        return generator.uniform(*THINK_MS)
    return pause_ms(before, generator)
