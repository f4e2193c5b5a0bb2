"""What copying could bring to edits at best, against what drafting brought.

    python -m bench.speculation.edit_ceiling RESULTS [--data DIR] [--costs 1=13,8=18,16=28,32=50]

RESULTS has a run of ``draftline bench quality --sets edit``. The copier of this table knows the answer: it
copies each of the longest common blocks of tokens of the old code and the answer (difflib) from its first
token to its last, and decodes the others one by one. A drafter that copies from the code can do better only
by guessing tokens that are not in it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from statistics import quantiles

from bench.commands.choices import data_directory
from bench.journal import load
from bench.quality.datasets import load_edits
from bench.records import Answer
from bench.speculation.simulate import COSTS, Costs, costs_from
from inference.drafting.base import DRAFT_LIMIT

PLAIN, DRAFTED = "raw, none", "raw, auto"
KEPT = 0.8  # of the old lines, for the second row


@dataclass(frozen=True)
class Edit:
    """One answer.

    Attributes:
        kept: share of the old code's lines that the answer has too.
        ceiling, got: speed over plain decoding, of the copier that knows all and of the drafts.
        tokens_per_forward: with drafts.
    """

    kept: float
    ceiling: float
    got: float
    tokens_per_forward: float


def ceiling(old: Sequence[int], new: Sequence[int], costs: Costs) -> float:
    """Speed of decoding ``new`` over plain decoding, if all is copied from ``old`` that can be."""
    if not new:
        return 1.0
    blocks = [block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()]
    ms = (len(new) - sum(blocks)) * costs(1)
    for size in blocks:
        whole, rest = divmod(size, DRAFT_LIMIT + 1)
        ms += whole * costs(DRAFT_LIMIT + 1) + (costs(rest) if rest else 0.0)
    return len(new) * costs(1) / ms


def kept_lines(old: str, new: str) -> float:
    """Share of the lines of ``old`` that ``new`` has too."""
    lines, there = old.splitlines(), {*new.splitlines()}
    return sum(line in there for line in lines) / len(lines) if lines else 0.0


def table(edits: Sequence[Edit]) -> str:
    """Medians and quartiles, of all and of those that keep most lines."""
    rows = ["edits                 number  ceiling            drafts             tokens per forward"]
    for name, some in (
        ("all", edits),
        (f">= {KEPT:.0%} of lines kept", [edit for edit in edits if edit.kept >= KEPT]),
    ):
        if len(some) > 1:
            columns = (
                _quartiles([getattr(edit, field) for edit in some])
                for field in ("ceiling", "got", "tokens_per_forward")
            )
            rows.append(f"{name:<21} {len(some):>6}  " + " ".join(f"{column:<18}" for column in columns))
    return "\n".join(row.rstrip() for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.speculation.edit_ceiling")
    parser.add_argument("results", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--costs", type=costs_from, default=Costs(COSTS), help="ROWS=MS,... of a forward")
    args = parser.parse_args(arguments)
    answers: dict[str, dict[str, Answer]] = {}
    for run in load([args.results]):
        for record in run.records:
            if isinstance(record, Answer) and record.set == "edit" and record.system == "draftline":
                answers.setdefault(record.item, {})[record.variant] = record
    data = data_directory(args.data)
    edits = [] if data is None else _edits(answers, data, args.costs)
    if len(edits) < 2:
        print(
            f"{args.results} has no edits in both {PLAIN!r} and {DRAFTED!r}, or --data is missing",
            file=sys.stderr,
        )
        return 1
    print(table(edits))
    return 0


def _edits(answers: Mapping[str, Mapping[str, Answer]], data: Path, costs: Costs) -> list[Edit]:
    from inference.api import DEFAULT_MODEL
    from inference.tokenizer import Tokenizer
    from inference.weights.store import prepare

    tokenizer = Tokenizer(prepare(DEFAULT_MODEL, "int8", allow_download=False, progress=None).tokenizer)
    known = {task.id: task for task in load_edits(data)}
    edits = []
    for item, variants in answers.items():
        plain, drafted = variants.get(PLAIN), variants.get(DRAFTED)
        if plain is None or drafted is None or not plain.decode_ms or not drafted.decode_ms:
            continue
        old = known[item].code
        edits.append(
            Edit(
                kept_lines(old, plain.text),
                ceiling(tokenizer.encode(old), tokenizer.encode(plain.text), costs),
                plain.decode_ms / drafted.decode_ms,
                (drafted.tokens or 0) / max(drafted.forwards or 0, 1),
            )
        )
    return edits


def _quartiles(values: Sequence[float]) -> str:
    low, median, high = quantiles(values, n=4)
    return f"{median:.2f} ({low:.2f}-{high:.2f})"


if __name__ == "__main__":
    sys.exit(main())
