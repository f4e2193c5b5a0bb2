"""The settings that the extension and the LSP4IJ template offer are those of the server."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lsp_server import settings

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
PACKAGE = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draftline_settings", EXTENSION / "scripts" / "settings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_files_are_as_the_script_writes_them(writer: ModuleType) -> None:
    hint = "run: python editors/vscode/scripts/settings.py"
    text = writer.PACKAGE.read_text(encoding="utf-8")
    assert writer.package(text) == text, hint
    assert writer.SCHEMA.read_text(encoding="utf-8") == writer.schema_text(), hint


def test_every_setting_of_the_server_is_offered_with_words() -> None:
    offered = PACKAGE["contributes"]["configuration"][1]["properties"]
    assert {key.removeprefix("draftline.") for key in offered} == set(settings._KEYS) - {"client"}
    assert all(len(schema["description"]) > 8 for schema in offered.values())


def test_defaults_change_nothing(writer: ModuleType) -> None:
    defaults = {key: schema["default"] for key, schema in writer.properties().items()}
    # Those without a value of their own are not sent, so "" and null must both be left alone.
    sent = {key: value for key, value in defaults.items() if value is not None}
    merged, warnings, unknown = settings.merge(settings.Settings(), defaults)
    assert (merged, warnings, unknown) == (settings.Settings(), [], [])
    assert settings.merge(settings.Settings(), sent)[0] == settings.Settings()


def test_limits_are_those_of_the_server(writer: ModuleType) -> None:
    def accepted(key: str, value: Any) -> bool:
        return not settings.merge(settings.Settings(), {key: value})[1]

    checked = 0
    for key, schema in writer.properties().items():
        if schema["type"] in ("integer", "number", ["integer", "null"]):
            assert accepted(key, schema["minimum"]), key
            # How many threads a machine can use, the schema cannot know.
            assert accepted(key, schema["maximum"]) or key == "threads", key
            assert not accepted(key, schema["minimum"] - 1), key
            checked += 1
        if "enum" in schema:
            assert all(accepted(key, value) for value in schema["enum"]), key
            assert not accepted(key, "no-such-value"), key
            checked += 1
    assert checked > 10


def test_a_workspace_cannot_consent_to_downloads() -> None:
    offered = PACKAGE["contributes"]["configuration"][1]["properties"]
    assert offered["draftline.allowDownload"]["scope"] == "machine"
    restricted = PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert {"draftline.path", "draftline.pythonPath"} <= set(restricted)


def test_what_package_json_names_is_there() -> None:
    contributes = PACKAGE["contributes"]
    commands = {command["command"] for command in contributes["commands"]}
    used = [binding["command"] for binding in contributes["keybindings"]]
    used += [entry["command"] for menu in contributes["menus"].values() for entry in menu]
    for step in (step for walk in contributes["walkthroughs"] for step in walk["steps"]):
        used += re.findall(r"command:([\w.]+)", step["description"])
        assert (EXTENSION / step["media"]["markdown"]).is_file()
        # A step that names none is done once it was looked at.
        events = [event.partition(":") for event in step["completionEvents"]]
        assert events and all(kind == "onCommand" for kind, _, _ in events)
        assert {name for _, _, name in events} <= set(re.findall(r"command:([\w.]+)", step["description"]))
    assert set(used) <= commands
    source = (EXTENSION / "src" / "extension.ts").read_text(encoding="utf-8")
    registered = {f"draftline.{name}" for name in re.findall(r"\bcommand\('(\w+)',", source)}
    assert registered == commands


def test_the_lock_file_names_no_host() -> None:
    lock = (EXTENSION / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    pinned = {**PACKAGE["dependencies"], **PACKAGE["devDependencies"]}
    assert json.loads(lock)["packages"][""]["dependencies"] == PACKAGE["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pinned.values())
    assert PACKAGE["engines"]["vscode"] == f"^{pinned['@types/vscode']}"
