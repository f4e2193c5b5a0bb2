"""Kills editors and their engine, one after the other at random moments: python -m tests.editors.kills.

Real editors share one engine process with the real model. Whoever is killed, the editors that are left must
show a suggestion again, and there must be one engine process again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.engines import Engines, own_engines
from tests.editors.report import where, write
from tests.editors.windows import KINDS, Window, missing, shared_variables

PROMISED_SECONDS = 5.0
# A request takes a part of this, so that some are on their way and some have been answered.
MOST_SECONDS_BEFORE = 0.6


@dataclass
class Turn:
    """One kill.

    Attributes:
        victim: an editor's name, or "the engine".
        seconds: from the first key of the next text to the suggestion on screen, of each editor that is left.
    """

    victim: str
    seconds: dict[str, float] = field(default_factory=dict)

    def line(self, number: int) -> str:
        """For people."""
        rest = ", ".join(f"{name} {took:.1f} s" for name, took in self.seconds.items())
        return f"{number:3}  {self.victim + ' killed':22} suggestion on screen: {rest}"


class Kills:
    """Windows, one of a kind, and what happens to them."""

    def __init__(self, directory: Path, engines: Engines) -> None:
        self._directory, self._engines = directory, engines
        self._env = shared_variables(directory, engines.directory)
        self._count = 0
        self.windows: dict[str, Window] = {}

    def _next(self) -> int:
        self._count += 1
        return self._count

    def open(self, kind: str) -> None:
        """Another window, which suggests."""
        directory = self._directory / f"{kind}-{self._next()}"
        directory.mkdir()
        self.windows[kind] = KINDS[kind](directory, self._env)
        self.windows[kind].completes(self._next())

    def turn(self, dice: random.Random) -> Turn:
        """Kill somebody, and let the others suggest.

        Raises:
            AssertionError: one of them does not, or there is not one engine process.
        """
        for window in self.windows.values():
            window.write(self._next())
        time.sleep(dice.uniform(0, MOST_SECONDS_BEFORE))  # the moment is random, not waited for
        kind = "" if dice.random() < 0.5 else dice.choice(list(self.windows))
        if kind:
            killed = self.windows.pop(kind)
            killed.kill()
            turn = Turn(killed.name)
        else:
            for process in self._engines.processes():
                process.kill()
            turn = Turn("the engine")
        for window in self.windows.values():
            turn.seconds[window.name], _ = window.completes(self._next())
        self._one_engine()
        if kind:
            self.open(kind)
        return turn

    def _one_engine(self) -> None:
        end = time.monotonic() + 60
        # One that came too late to a start may be about to end; it has loaded nothing.
        while not len(self._engines.processes()) == len(self._engines.answering()) == 1:
            assert time.monotonic() < end, f"engine processes: {self._engines.processes()}"
            time.sleep(0.05)
        clients, windows = self._engines.the_one().clients, len(self.windows)
        assert clients == windows, f"{clients} servers are attached for {windows} editors"

    def close(self) -> None:
        """End the editors."""
        for window in self.windows.values():
            window.close()


@contextlib.contextmanager
def opened(kinds: list[str]) -> Iterator[Kills]:
    """Windows with an engine of their own; all is ended in the end."""
    with own_engines() as engines, tempfile.TemporaryDirectory() as directory:
        kills = Kills(Path(directory), engines)
        try:
            for kind in kinds:
                kills.open(kind)
            yield kills
        finally:
            kills.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.editors.kills", description=(__doc__ or "").partition("\n")[0]
    )
    for kind in KINDS:
        parser.add_argument(f"--{kind}", action="store_true")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the victims and the moments")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the output to FILE too")
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if getattr(options, kind)]
    kinds = kinds or [kind for kind in KINDS if not missing(kind)]
    for kind in kinds:
        if why := missing(kind):
            parser.error(f"--{kind}: {why}")
    if os.name != "posix" or len(kinds) < 2:
        parser.error("two editors are needed that share an engine over a Unix socket")
    dice = random.Random(options.seed)
    turns: list[Turn] = []
    with opened(kinds) as kills:
        names = ", ".join(window.name for window in kills.windows.values())
        lines = [f"{names}; one engine process with the default model; {where()}"]
        print(*lines, flush=True)
        for number in range(1, options.kills + 1):
            turns.append(kills.turn(dice))
            lines.append(turns[-1].line(number))
            print(lines[-1], flush=True)
    lines += summary(turns)
    print(*lines[-2:], sep="\n")
    write(options.out, lines)
    return 0


def summary(turns: list[Turn]) -> list[str]:
    """What was promised, and what came: two lines."""
    of_engine = [turn for turn in turns if turn.victim == "the engine"]
    waits = [took for turn in turns for took in turn.seconds.values()]
    late = sum(took > PROMISED_SECONDS for took in waits)
    return [
        f"{len(turns)} kills, {len(of_engine)} of them of the engine; after each there was one engine process"
        " again, and every editor that was left suggested",
        f"slowest suggestion {max(waits):.1f} s, later than {PROMISED_SECONDS:g} s: {late} of {len(waits)}",
    ]


if __name__ == "__main__":
    sys.exit(main())
