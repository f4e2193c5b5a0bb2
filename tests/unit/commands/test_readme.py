"""The README's tables say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from inference import errors
from inference.diagnosis import problems
from inference.weights import catalog
from lsp_server import cli, settings
from lsp_server.commands import doctor
from lsp_server.completion.filters import FILTERS
from lsp_server.completion.reasons import Reason
from lsp_server.inline_edit.reasons import Flag, NoEdit
from lsp_server.inline_edit.routes import EDIT
from lsp_server.inline_edit.wire import INLINE_EDIT, WARM_UP
from lsp_server.settings import Settings

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_settings_and_their_defaults() -> None:
    rows = re.findall(r"^\| (?:`--[^|]*(?:\\\|[^|]*)*`)? ?\| `(\w+)` \| ([^|]+) \|", README, re.MULTILINE)
    listed = dict(rows)
    assert set(listed) == set(settings._KEYS)
    for key, shown in listed.items():
        default = getattr(Settings(), settings._KEYS[key][0])
        if default is None:
            by_the_client = {"replaceSuffix": "by the client", "client": "by the client"}
            words = {"numerics": "by the device", "draftModel": "none", **by_the_client}.get(
                key, "by the machine"
            )
        elif isinstance(default, bool):
            # A switch is off; the settings have JSON's words.
            words = "off" if key == "noCache" else str(default).lower()
        elif isinstance(default, frozenset):
            words = ", ".join(sorted(default)) or "none"
        elif isinstance(default, float):
            words = f"{default:g}"
        else:
            words = str(default) if default not in (frozenset(), "") else "none"
        assert shown.strip().strip("`") == words, key


def test_models_and_commands() -> None:
    for name in catalog.CATALOG:
        assert f"| `{name}`" in README
    for command in cli.COMMANDS:
        assert f"| `draftline {command}" in README


def test_filters() -> None:
    table = README.partition("| filter | what it does |")[2].partition("\n\n")[0]
    names = "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("|"))
    listed = re.findall(r"`([\w-]+)`", names)
    assert listed == [name for name in FILTERS if name in listed]
    assert set(FILTERS) <= set(listed)


def test_codes() -> None:
    codes = {reason.value for reason in Reason} - {"unknown-document"}
    codes |= {
        error.code for error in vars(errors).values() if isinstance(error, type) and hasattr(error, "code")
    }
    # Faults of a caller, which no user meets in an editor.
    codes -= {"engine-stopped", "invalid-request", "unknown-model"}
    for module in (problems, doctor):
        assert module.__file__ is not None
        source = Path(module.__file__).read_text(encoding="utf-8")
        codes |= set(re.findall(r'Problem\(\s*"([\w-]+)"', source))
    missing = {code for code in codes if f"`{code}`" not in README}
    assert not missing


def test_reasons_and_flags_of_edits() -> None:
    section = README.partition("## Inline edit\n")[2].partition("\n## ")[0]
    first_cells = "".join(re.findall(r"^\| (`[^|]*)\|", section, re.MULTILINE))
    assert {code.value for code in (*NoEdit, *Flag)} <= set(re.findall(r"`([\w-]+)`", first_cells))
    assert all(name in section for name in (EDIT, INLINE_EDIT, WARM_UP))


def test_quick_start() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "pytest" in block)
    for command in block.strip().split(" && "):
        assert command in ci


def test_the_picture_is_a_recorded_run() -> None:
    picture = (ROOT / "docs" / "demo.svg").read_text(encoding="utf-8")
    assert "Every&#160;figure&#160;was&#160;measured" in picture
    assert "different" not in picture
