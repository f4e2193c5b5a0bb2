"""Tries drafters on recorded answers: how many forwards they would take, and what that would cost.

    python -m bench.speculation.simulate record FILE [--data DIR] [--count N]
    python -m bench.speculation.simulate replay FILE [--costs 1=13,8=18,16=28,32=50]

Draftless decoding is the unit. What the model would have put behind a rejected guess is not recorded, so
a drafter learns nothing from there: live it does a little better. The time of guessing itself is not counted.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.speculation.recordings import Recording, load, record, save
from inference.drafting.base import DRAFT_LIMIT
from inference.drafting.memory import DraftMemory
from inference.drafting.planner import Planner
from inference.drafting.recycling import RecyclingTable
from inference.drafting.tree_drafter import TreeDrafter

# Milliseconds of a forward by rows; between these the cost grows evenly.
COSTS: Mapping[int, float] = {1: 13.0, 8: 18.0, 16: 28.0, 32: 50.0}

_UNKNOWN = -1  # what the model would choose where it never was


@dataclass
class Tally:
    """What the answers of a set took.

    Attributes:
        tokens: decoded, the first of each answer left out: it comes from the prompt's forward.
        ms, plain_ms: of the forwards, and of those without drafts.
    """

    tokens: int = 0
    forwards: int = 0
    drafted: int = 0
    ms: float = 0.0
    plain_ms: float = 0.0

    @property
    def speedup(self) -> float:
        """Over decoding without drafts."""
        return self.plain_ms / self.ms if self.ms else 1.0


class Costs:
    """A table of milliseconds by rows."""

    def __init__(self, table: Mapping[int, float]) -> None:
        if 1 not in table or min(table) < 1 or min(table.values()) <= 0:
            raise ValueError("a table of costs needs the time of 1 row, and no rows below it")
        self._rows = sorted(table)
        self._ms = [table[rows] for rows in self._rows]

    def __call__(self, rows: int) -> float:
        """Milliseconds of a forward; behind the last entry in proportion to it."""
        at = bisect_left(self._rows, rows)
        if at == len(self._rows):
            return self._ms[-1] * rows / self._rows[-1]
        if self._rows[at] == rows:
            return self._ms[at]
        share = (rows - self._rows[at - 1]) / (self._rows[at] - self._rows[at - 1])
        return self._ms[at - 1] + share * (self._ms[at] - self._ms[at - 1])


class RecordedTable(RecyclingTable):
    """Learns only from rows whose choice was recorded."""

    def learn(
        self,
        before: int,
        fed: Sequence[int],
        chosen: Sequence[int],
        top: Sequence[Sequence[int]] | None = None,
        parents: Sequence[int] | None = None,
    ) -> None:
        """Row by row."""
        for row, token in enumerate(fed):
            if chosen[row] == _UNKNOWN:
                continue
            parent = row - 1 if parents is None else parents[row]
            known = None if top is None else [top[row]]
            super().learn(before if parent < 0 else fed[parent], [token], [chosen[row]], known)


# Replays one answer, and tells of each forward how many tokens were drafted and how many came out.
Way = Callable[[Recording, Callable[[int, int], None]], None]


def tree_way(costs: Costs, texts: Iterable[Sequence[int]] = ()) -> Way:
    """`TreeDrafter` with `Planner`. ``texts`` are other files of the workspace, as token ids."""
    planner, memory = Planner(), DraftMemory()
    memory.recycling = RecordedTable()
    for number, text in enumerate(texts):
        memory.learn_text(f"text {number}", text)

    def replay(recording: Recording, forward: Callable[[int, int], None]) -> None:
        memory.recycling.clear()
        drafter = TreeDrafter(lambda: memory.history("", recording.prompt), memory, planner)
        output = recording.output
        drafter.extend(output[:1])
        done = 1
        while done < len(output):
            tree = drafter.propose(_room(recording, done))
            tree = tree.head(planner.width(tree))
            chosen = [_UNKNOWN] * (len(tree) + 1)
            top: list[tuple[int, ...]] = [()] * len(chosen)
            row, start = 0, done
            while True:
                chosen[row], top[row] = output[done], recording.top[done]
                done += 1
                path = tree.taken(chosen)
                if len(path) < done - start or done == len(output):
                    break
                row = path[-1] + 1
            drafter.verified(tree, [output[start - 1], *tree.tokens], chosen, top)
            planner.observe(len(tree) + 1, costs(len(tree) + 1))
            drafter.extend(output[start:done])
            forward(len(tree), done - start)

    return replay


def simulate(recordings: Iterable[Recording], way: Way, costs: Costs) -> dict[str, Tally]:
    """Replay all answers; by set."""
    tallies: dict[str, Tally] = {}
    for recording in recordings:
        tally = tallies.setdefault(recording.set, Tally())

        def forward(drafted: int, taken: int, tally: Tally = tally) -> None:
            tally.forwards += 1
            tally.drafted += drafted
            tally.tokens += taken
            tally.ms += costs(drafted + 1)
            tally.plain_ms += taken * costs(1)

        way(recording, forward)
    return tallies


def lines(results: Mapping[str, Mapping[str, Tally]]) -> str:
    """For each drafter and set the speed over plain decoding and the tokens per forward."""
    found = []
    for name, tallies in results.items():
        for set_name, tally in sorted(tallies.items()):
            per_forward = tally.tokens / max(tally.forwards, 1)
            found.append(
                f"{name:12} {set_name:8} {tally.speedup:6.3f} x plain {per_forward:6.2f} tokens per forward "
                f"{tally.drafted / max(tally.forwards, 1):6.2f} drafted"
            )
    return "\n".join(found)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.speculation.simulate", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="decode the bench's prompts once")
    recorder.add_argument("file", type=Path)
    recorder.add_argument("--data", type=Path, help="the directory with the files of tasks")
    recorder.add_argument("--count", type=int, default=12, help="prompts of each set (12)")
    replayer = commands.add_parser("replay", help="try the drafters on recorded answers")
    replayer.add_argument("file", type=Path)
    replayer.add_argument("--costs", type=costs_from, default=Costs(COSTS), help="ROWS=MS,... of a forward")
    args = parser.parse_args()
    if args.command == "record":
        _record(args.file, args.data, args.count)
        return
    recordings = load(args.file)
    ways = {"tree": tree_way(args.costs)}
    print(lines({name: simulate(recordings, way, args.costs) for name, way in ways.items()}))


def _record(path: Path, data: Path | None, count: int) -> None:
    # Imported here: only recording needs the model and the server's settings.
    from dataclasses import replace

    from bench.commands.choices import data_directory
    from bench.places import default_corpus
    from bench.speculation.collect import Sources, collect
    from bench.speculation.extent import FULL, SETS
    from bench.speculation.prompts import PromptMaker
    from inference.runtime import load_runtime
    from lsp_server.settings import Settings

    settings = Settings()
    runtime = load_runtime(settings.engine_config(), lambda message, fraction: None)
    maker = PromptMaker(runtime.tokenizer, runtime.context, settings.completion_options(), FULL.max_tokens)
    sources = Sources(SETS, data_directory(data), default_corpus(), settings.seed)
    prompts = collect(maker, sources, replace(FULL, count=count), print)
    save(record(runtime, prompts), path)


def costs_from(text: str) -> Costs:
    return Costs({int(rows): float(ms) for rows, ms in (entry.split("=") for entry in text.split(","))})


def _room(recording: Recording, done: int) -> int:
    return min(DRAFT_LIMIT, recording.max_tokens - done - 1)


if __name__ == "__main__":
    main()
