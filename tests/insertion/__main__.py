"""``python -m tests.insertion``: many cases; exit status 1 if a text would be inserted wrongly."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import traceback
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

from tests.insertion.cases import CASES, Case
from tests.insertion.drive import Outcomes, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.insertion", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="append one line of JSON")
    args = parser.parse_args()
    outcomes = Outcomes()
    loop = asyncio.new_event_loop()

    @seed(args.seed)
    @settings(max_examples=args.cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(CASES)
    def each(case: Case) -> None:
        outcomes.add(run(case, loop), case)

    failure = ""
    try:
        each()
    except Exception:
        # Hypothesis has tried smaller cases by now and shows the smallest.
        failure = traceback.format_exc()
        print(failure, file=sys.stderr)
    finally:
        loop.close()
    print(
        f"{outcomes.cases} cases, seed {args.seed}: {'WRONG' if failure else 'no wrong insertion'}; "
        f"{outcomes.share:.1%} with a suggestion"
    )
    if args.out is not None:
        record = {
            "cases": outcomes.cases,
            "seed": args.seed,
            "wrong": bool(failure),
            "suggested": outcomes.suggested,
            "counts": dict(sorted(outcomes.counts.items())),
        }
        with args.out.open("a", encoding="utf-8") as file:
            print(json.dumps(record), file=file)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
