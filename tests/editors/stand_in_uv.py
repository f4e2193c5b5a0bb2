"""A uv for tests, without a network: python stand_in_uv.py RECORD venv … | pip install …

Its environments are real and see the packages of the Python that runs this. The program ``draftline`` in
them has the made-up engine of fake_server.py, and says that its model is missing until ``draftline model
fetch`` was run. RECORD gets a line of JSON for each call: the arguments.
"""

from __future__ import annotations

import json
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """\
#!/bin/sh
here=$(dirname "$0")
if [ "$1 $2" = "model fetch" ]; then
    echo "$3" >"$here/fetched"
    exit
fi
[ -e "$here/fetched" ] || export FAKE_FAIL=1
exec "{python}" "{root}/tests/e2e/fake_server.py" "$@"
"""


def main() -> int:
    """Do what uv would be asked to do by the extension, and refuse all else."""
    record, *args = sys.argv[1:]
    with open(record, "a", encoding="utf-8") as file:
        file.write(json.dumps(args) + "\n")
    match args:
        case ["venv", "--python", _, folder]:
            venv.create(folder, with_pip=False)
            print(f"Creating virtual environment at: {folder}", file=sys.stderr)
        case ["pip", "install", "--python", python, source]:
            environment = Path(python).parents[1]
            (packages,) = environment.glob("lib/python3*/site-packages")
            (packages / "stand_in.pth").write_text(f"{sysconfig.get_path('purelib')}\n{source}\n")
            program = environment / "bin" / "draftline"
            program.write_text(PROGRAM.format(python=python, root=ROOT), encoding="utf-8")
            program.chmod(0o755)
            print(f"Installed 1 package: {source}", file=sys.stderr)
        case _:
            print(f"error: unexpected arguments {args}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
