"""Types into a real editor and watches its screen: python -m tests.editors.typing --neovim [PROGRAM]."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.editors.neovim import ROOT, binaries
from tests.editors.real_weights import linked_home
from tests.editors.typing.neovim import type_into
from tests.editors.typing.plan import TYPED, make_plan

REAL = (sys.executable, "-m", "lsp_server", "lsp")
FAKE = (sys.executable, str(ROOT / "tests" / "e2e" / "fake_server.py"), "lsp")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.editors.typing", description=__doc__)
    parser.add_argument("--neovim", nargs="?", const="", metavar="PROGRAM", required=True)
    parser.add_argument("--characters", type=int, default=300, help=f"1 to {len(TYPED)} (default 300)")
    parser.add_argument("--per-second", type=float, default=12.0)
    parser.add_argument("--seed", type=int, default=0, help="of the pauses between keys")
    parser.add_argument("--fake", action="store_true", help="a made-up engine in place of the model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a record to FILE, a line each")
    options = parser.parse_args()
    plan = make_plan(options.characters, options.per_second, options.seed)
    wrong = 0
    for binary in [options.neovim] if options.neovim else binaries():
        with tempfile.TemporaryDirectory() as directory:
            home = {} if options.fake else {"DRAFTLINE_HOME": str(linked_home(Path(directory)))}
            env = {"FAKE_ANSWER": "total(prices)", **home}
            result = type_into(
                binary,
                plan,
                options.per_second,
                FAKE if options.fake else REAL,
                "a made-up engine" if options.fake else "the default model",
                Path(directory),
                env,
            )
        print(*result.lines(), sep="\n", flush=True)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result.to_json()) + "\n")
        wrong += bool(result.faults())
    return 1 if wrong else 0


sys.exit(main())
