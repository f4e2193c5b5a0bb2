"""Writes the server's settings into the editors' files: ``python editors/vscode/scripts/settings.py``.

Names, types and defaults come from lsp_server/settings.py, words from the README's table of settings. Written
are the section "configuration" of the VS Code extension's package.json, and the schema of LSP4IJ's settings.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from lsp_server import settings  # noqa: E402
from lsp_server.completion.filters import FILTERS  # noqa: E402

PACKAGE = ROOT / "editors" / "vscode" / "package.json"
SCHEMA = ROOT / "editors" / "jetbrains" / "draftline" / "settings.schema.json"
# Each extension says itself which client it is.
LEFT_OUT = ("client",)
# The user agrees to downloads, not a repository that was opened.
USER_ONLY = ("allowDownload",)
# The README says more of these elsewhere.
WORDS = {
    "numerics": "How the weights are stored and multiplied; by the device if not set.",
    "mixed": "Other numerics for some linear layers: PATTERN=NUMERICS, separated by commas.",
}
# No decimal number of JSON holds more.
_SAFE = 2**53 - 1


class _Watched:
    """Settings that note which of them were read."""

    def __init__(self) -> None:
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(settings.Settings(), name)


def engine_fields() -> set[str]:
    """Fields that the one engine is started with; all others may differ from folder to folder."""
    watched = _Watched()
    settings.Settings.engine_config(watched)  # type: ignore[arg-type]
    settings.Settings.sharing(watched)  # type: ignore[arg-type]
    return watched.read


def descriptions() -> dict[str, str]:
    """What the README's table says of each key."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    # A cell of switches may hold an escaped bar.
    rows = re.findall(r"^\|(?:[^|\\]|\\.)*\| `(\w+)` \|[^|]+\| (.+?) \|$", text, re.MULTILINE)
    found = {}
    for key, words in rows:
        words = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", words)
        words = re.sub(r"(, |; )?see (above|[A-Z][\w ]*)", "", words).replace("`", "").strip()
        found[key] = f"{words[:1].upper()}{words[1:]}."
    return {**found, **WORDS}


def value_schema(key: str) -> dict[str, Any]:
    """The values that the server accepts, as JSON Schema; ``null`` where the default is its own choice."""
    field, read = settings._KEYS[key]
    default = getattr(settings.Settings(), field)
    kind = read.__qualname__.partition(".")[0]
    bound = inspect.getclosurevars(read).nonlocals if inspect.isfunction(read) else {}
    schema: dict[str, Any]
    if kind == "_flag":
        schema = {"type": "boolean"}
    elif kind == "_whole":
        schema = {"type": "integer", "minimum": bound["low"], "maximum": min(bound["high"], _SAFE)}
    elif kind == "_number":
        schema = {"type": "number", "minimum": 0, "maximum": 5}
    elif kind == "_one_of":
        schema = {"type": "string", "enum": list(bound["choices"])}
    elif kind in ("_names", "_names_of"):
        items: dict[str, Any] = {"type": "string"}
        if kind == "_names_of":
            items["enum"] = list(bound["choices"])
        schema = {"type": "array", "items": items, "uniqueItems": True}
        if key == "disabledFilters":
            # Stop rules have names too, so others are allowed.
            schema["items"] = {"anyOf": [{"enum": list(FILTERS)}, {"type": "string"}]}
    elif kind == "_device":
        schema = {"type": "string", "pattern": r"^(cpu|mps|cuda(:\d+)?)$"}
    elif kind in ("_text", "_mixed"):
        schema = {"type": "string"}
    else:
        raise ValueError(f"no schema for {kind}, which reads {key}")
    if default is None:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    schema["default"] = sorted(default) if isinstance(default, frozenset) else default
    return schema


def properties() -> dict[str, dict[str, Any]]:
    """By key, in the order of the server's table."""
    words = descriptions()
    return {
        key: {**value_schema(key), "description": words[key]} for key in settings._KEYS if key not in LEFT_OUT
    }


def vscode_configuration(own: dict[str, Any]) -> list[dict[str, Any]]:
    """The section "configuration"; ``own`` are the extension's properties."""
    engine = engine_fields()
    server = {}
    for order, (key, schema) in enumerate(properties().items()):
        scope = "machine-overridable" if settings._KEYS[key][0] in engine else "resource"
        if key in USER_ONLY:
            scope = "machine"
        server[f"draftline.{key}"] = {**schema, "scope": scope, "order": order}
    return [
        {"title": "Draftline", "properties": own},
        {"title": "Server", "properties": server},
    ]


def lsp4ij_schema() -> dict[str, Any]:
    """The schema of the settings file of the LSP4IJ template."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "LSP4IJ/draftline/settings.schema.json",
        "title": "Settings of Draftline",
        "type": "object",
        "additionalProperties": False,
        "properties": {f"draftline.{key}": schema for key, schema in properties().items()},
    }


def package(text: str) -> str:
    """package.json with the section as it should be."""
    value = json.loads(text)
    own = value["contributes"]["configuration"][0]["properties"]
    value["contributes"]["configuration"] = vscode_configuration(own)
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def schema_text() -> str:
    """The schema as a file."""
    return json.dumps(lsp4ij_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PACKAGE.write_text(package(PACKAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
