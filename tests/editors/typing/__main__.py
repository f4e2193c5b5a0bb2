"""Types into real editors and watches what they paint: python -m tests.editors.typing."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.editors import emacs, neovim, vscode
from tests.editors.real_weights import linked_home
from tests.editors.report import where, write
from tests.editors.terminal import TMUX
from tests.editors.typing import emacs as emacs_typing
from tests.editors.typing import neovim as neovim_typing
from tests.editors.typing import vscode as vscode_typing
from tests.editors.typing.plan import make_plan
from tests.editors.typing.result import Result, table
from tests.editors.vscode_session import package, session

REAL = (sys.executable, "-m", "lsp_server")
FAKE = (sys.executable, str(neovim.ROOT / "tests" / "e2e" / "fake_server.py"))
FAKE_ANSWER = "totals = {}\n    for_all = [sum(prices)]"


@dataclass(frozen=True)
class Typing:
    """What is asked for: how many keys at which pace, and the server behind it."""

    keys: int
    per_second: float
    seed: int
    server: Sequence[str]
    name: str

    def in_neovim(self, binary: str, directory: Path, env: Mapping[str, str]) -> Result:
        plan = make_plan(self.keys, self.per_second, self.seed)
        return neovim_typing.type_into(binary, plan, (*self.server, "lsp"), self.name, directory, env)

    def in_emacs(self, binary: str, directory: Path, env: Mapping[str, str]) -> Result:
        plan = make_plan(self.keys, self.per_second, self.seed)
        return emacs_typing.type_into(binary, plan, (*self.server, "lsp"), self.name, directory, env)

    def in_vscode(self, binary: str, directory: Path, env: Mapping[str, str]) -> Result:
        plan = make_plan(self.keys, self.per_second, self.seed, indents=True)
        with session(directory / "vscode", package(), plan.above, "main.py", self.server, **env) as at:
            return vscode_typing.type_into(at, plan, self.name)


Run = Callable[[Typing, str, Path, Mapping[str, str]], Result]


def editors(options: argparse.Namespace) -> tuple[list[tuple[Run, str]], list[str]]:
    """Those that are asked for, all if none is, with their programs; and why others are not there."""
    every = options.neovim is None and not options.emacs and not options.vscode
    found: list[tuple[Run, str]] = []
    missing: list[str] = []
    if every or options.neovim is not None:
        programs = [options.neovim] if options.neovim else neovim.binaries()
        found += [(Typing.in_neovim, program) for program in programs if TMUX is not None]
        if TMUX is None or not programs:
            missing.append("there is no Neovim, or no tmux, on the PATH")
    if every or options.emacs:
        program, why = emacs.found()
        found += [(Typing.in_emacs, program)] if program else []
        missing += [why] if why else []
    if every or options.vscode:
        why = vscode.missing()
        found += [] if why else [(Typing.in_vscode, "")]
        missing += [why] if why else []
    return found, missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.editors.typing", description=__doc__)
    parser.add_argument("--neovim", nargs="?", const="", metavar="PROGRAM", help="those of DRAFTLINE_NVIM")
    parser.add_argument("--emacs", action="store_true")
    parser.add_argument("--vscode", action="store_true")
    parser.add_argument("--characters", type=int, default=300, help="keys that are pressed (default 300)")
    parser.add_argument("--per-second", type=float, default=12.0)
    parser.add_argument("--seed", type=int, default=0, help="of the pauses between keys")
    parser.add_argument("--fake", action="store_true", help="a made-up engine in place of the model")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the output to FILE too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a record to FILE, a line each")
    options = parser.parse_args()
    server, name = (FAKE, "a made-up engine") if options.fake else (REAL, "the default model")
    typing = Typing(options.characters, options.per_second, options.seed, server, name)
    found, missing = editors(options)
    if missing:
        print(*missing, sep="\n", file=sys.stderr)
    results: list[Result] = []
    for run, program in found:
        with tempfile.TemporaryDirectory() as directory:
            home = {} if options.fake else {"DRAFTLINE_HOME": str(linked_home(Path(directory)))}
            # An engine that serves others too would be slower, and is not measured here.
            env = {"FAKE_ANSWER": FAKE_ANSWER, "DRAFTLINE_SHARED_ENGINE": "0", **home}
            results.append(run(typing, program, Path(directory), env))
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(results[-1].to_json()) + "\n")
    lines = [f"{options.characters} keys at {options.per_second:g} per second; {name}; {where()}"]
    lines += table(results)
    print(*lines, sep="\n")
    write(options.out, lines)
    return 1 if missing or any(result.faults() for result in results) else 0


sys.exit(main())
