"""The LSP4IJ template: its files, and a session as LSP4IJ leads it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import pytest_asyncio

from tests.e2e.client import Client, place

TEMPLATE = Path(__file__).parents[2] / "editors" / "jetbrains" / "draftline"
# Every IDE sends its own name, so that only the template's option says which client it is.
IDE = "Some IDE 2026.2"
URI = "file:///work/project/main.py"

Open = Callable[..., Awaitable[Client]]


def read(name: str) -> Any:
    return json.loads((TEMPLATE / name).read_text(encoding="utf-8"))


def test_template_descriptor() -> None:
    template = read("template.json")
    assert {"id", "name", "programArgs", "fileTypeMappings"} <= set(template)
    known = {"id", "name", "url", "programArgs", "workingDir", "env", "expandConfiguration"}
    assert set(template) <= known | {"languageMappings", "fileTypeMappings"}
    assert set(template["programArgs"]) <= {"default", "windows", "mac", "unix", "linux"}
    assert all(command.split()[-1] == "lsp" for command in template["programArgs"].values())
    patterns: list[str] = []
    for mapping in template["fileTypeMappings"]:
        assert set(mapping) == {"fileType", "languageId"}
        assert set(mapping["fileType"]) <= {"name", "patterns"} and mapping["fileType"]["patterns"]
        assert mapping["languageId"] == mapping["languageId"].lower()
        patterns += mapping["fileType"]["patterns"]
    assert len(patterns) == len(set(patterns))


def test_only_files_that_lsp4ij_reads() -> None:
    known = {"template.json", "settings.json", "settings.schema.json", "initializationOptions.json"}
    known |= {"initializationOptions.schema.json", "experimental.json", "clientSettings.json"}
    known |= {"installer.json", "workspaceFolderSettings.json", "README.md"}
    assert {path.name for path in TEMPLATE.iterdir()} <= known


def test_settings_follow_their_schema() -> None:
    schema, values = read("settings.schema.json"), read("settings.json")
    for key, value in values.items():
        assert value == schema["properties"][key]["default"], key
    # Dotted keys become objects only so.
    assert read("template.json")["expandConfiguration"] is True


def test_the_zip_is_the_folder_and_always_the_same(tmp_path: Path) -> None:
    packer = TEMPLATE.parent / "scripts" / "pack.py"
    made = []
    for name in ("one.zip", "two.zip"):
        subprocess.run([sys.executable, packer, tmp_path / name], check=True, capture_output=True)
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert archive.testzip() is None
        packed = {name: archive.read(name) for name in archive.namelist()}
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert packed == {f"draftline/{path.name}": path.read_bytes() for path in TEMPLATE.iterdir()}


def test_the_guide_has_a_drawing_of_each_step() -> None:
    guide = (TEMPLATE / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\(\.\./pictures/([^)]+)\)", guide)
    assert sorted(named) == sorted(path.name for path in (TEMPLATE.parent / "pictures").iterdir())
    for name in named:
        ElementTree.parse(TEMPLATE.parent / "pictures" / name)


@pytest_asyncio.fixture
async def ide(tmp_path: Path) -> AsyncIterator[Open]:
    """Starts the server as LSP4IJ does: the template's options, configuration on request, UTF-16 only."""
    if sys.version_info < (3, 11):
        pytest.skip("the test client needs asyncio.timeout of Python 3.11")
    clients: list[Client] = []

    async def begin(**behaviour: object) -> Client:
        env = {f"FAKE_{name.upper()}": str(value) for name, value in behaviour.items()}
        env["DRAFTLINE_HOME"] = str(tmp_path / "home")
        client = await Client.start("tests/e2e/fake_server.py", "lsp", env=env)
        clients.append(client)
        client.configuration = {key.removeprefix("draftline."): v for key, v in read("settings.json").items()}
        capabilities = {
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}},
            "textDocument": {"inlineCompletion": {"dynamicRegistration": True}},
            "window": {"workDoneProgress": True},
        }
        await client.initialize(
            capabilities=capabilities,
            options=read("initializationOptions.json"),
            process_id=os.getpid(),
            name=IDE,
        )
        await client.ready()
        return client

    yield begin
    for client in clients:
        await client.dispose()


async def ask(client: Client, line: int, column: int) -> Any:
    """As LSP4IJ asks, also when the user pressed a key for it."""
    return await asyncio.wait_for(client.ask(URI, line, column, automatic=True)[1], 30)


@pytest.mark.e2e
async def test_items_suit_lsp4ij(ide: Open) -> None:
    client = await ide(answer="prices)")
    # A bracket behind the cursor: a range over it would be shown in front of the grey text.
    client.open(URI, "prices = [1]\n\ntotal = sum()\n")
    client.change(URI, "p", (2, 12))
    items = await ask(client, 2, 13)
    assert isinstance(items, list) and items
    for item in items:
        assert item["range"]["end"] == place(2, 13)
        assert item["range"]["start"]["line"] == 2
        assert isinstance(item["insertText"], str) and "\r" not in item["insertText"]
        assert "command" not in item and "filterText" not in item
        # The bracket that is there already is not written once more.
        assert not item["insertText"].endswith(")")
    assert await client.shutdown() == 0


@pytest.mark.e2e
async def test_typing_along(ide: Open) -> None:
    client = await ide(answer="eturn total")
    client.open(URI, "def f(total):\n    # é 😀\n    \n")
    client.change(URI, "r", (2, 4))
    (first,) = await ask(client, 2, 5)
    start = first["range"]["start"]["character"]
    # LSP4IJ shows the text without as many characters as lie between the range's start and the cursor.
    shown = first["insertText"][5 - start :]
    client.change(URI, shown[0], (2, 5))
    (second,) = await ask(client, 2, 6)
    assert second["range"]["end"] == place(2, 6)
    assert second["insertText"][6 - second["range"]["start"]["character"] :] == shown[1:]
    assert await client.shutdown() == 0


@pytest.mark.e2e
async def test_nothing_is_an_empty_list(ide: Open) -> None:
    client = await ide(answer="")
    client.open(URI, "x = \n")
    assert await ask(client, 0, 4) == []
    assert await client.shutdown() == 0


@pytest.mark.e2e
async def test_text_that_looks_like_a_snippet_stays_text(ide: Open) -> None:
    # LSP4IJ writes the text of a snippet as it is, placeholders included: so none is ever sent.
    client = await ide(answer="f'${1:name} $0'")
    client.open(URI, "x = \n")
    (item,) = await ask(client, 0, 4)
    assert item["insertText"] == "f'${1:name} $0'"
    assert await client.shutdown() == 0


@pytest.mark.e2e
async def test_acceptance_is_seen_without_a_command(ide: Open) -> None:
    client = await ide(answer="sum(prices)")
    client.open(URI, "prices = [1]\ntotal = \n")
    (item,) = await ask(client, 1, 8)
    client.change(URI, item["insertText"], (1, 8))
    await ask(client, 1, 8 + len(item["insertText"]))
    counts = (await client.request("draftline/statistics"))["counts"]
    assert counts["acceptedWhole"] == 1
    assert await client.shutdown() == 0
