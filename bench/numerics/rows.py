"""The rows of the table: settings of an engine by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from inference import api
from inference.api import EngineConfig

# The one that the answers of the others are compared with.
REFERENCE = "fp32"
# Fields of EngineConfig that make a row. A version that lacks one says so in the row.
ROWS: Mapping[str, Mapping[str, Any]] = {
    "int8": {"numerics": "int8"},
    "int8-kv": {"numerics": "int8", "kv": "int8"},
    "mixed": {"numerics": "int8", "mixed": "*.mlp.down=bf16"},
    "nf4": {"numerics": "nf4"},
    "llm-int8": {"numerics": "llm-int8"},
    "bf16": {"numerics": "bf16"},
    "fp32": {"numerics": "fp32"},
}


class NotInThisVersion(Exception):
    """A row needs a setting, or a value of one, that this version does not have."""


def row_settings(name: str, layout: str | None = None) -> dict[str, Any]:
    """The fields of a row; ``layout``: in place of the mixed row's own."""
    settings = dict(ROWS[name])
    if layout is not None and "mixed" in settings:
        settings["mixed"] = layout
    return settings


def config_for(base: EngineConfig, settings: Mapping[str, Any]) -> EngineConfig:
    """``base`` with the settings of a row.

    Raises:
        NotInThisVersion
    """
    known = {field.name for field in fields(EngineConfig)}
    for name, value in settings.items():
        if name not in known:
            raise NotInThisVersion(f"this version has no setting {name!r}")
        choices = getattr(api, _CHOICES.get(name, ""), None)
        if choices is not None and value not in choices:
            raise NotInThisVersion(f"this version has no {name} {value!r}")
    return replace(base, **settings)


_CHOICES = {"numerics": "NUMERICS", "kv": "KV_NUMERICS"}
