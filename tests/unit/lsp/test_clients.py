"""Which client gets which profile, and golden cases of what each is sent (tests/golden/items.toml)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from lsprotocol import converters, types

from lsp_server.completion.clients import CLIENTS, EMACS, GENERIC, LSP4IJ, NEOVIM, VSCODE, profile_for
from lsp_server.completion.items import build_result
from lsp_server.completion.service import Answer, CompletionService
from lsp_server.documents.store import DocumentStore
from lsp_server.documents.text import Point
from lsp_server.settings import Settings, merge
from tests.fake_engine import FakeEngine

GOLDEN = Path(__file__).parents[2] / "golden" / "items.toml"
URI = "file:///work/x.py"


@pytest.mark.parametrize(
    ("name", "version", "profile"),
    [
        ("Visual Studio Code", "1.106.0", "vscode"),
        ("Visual Studio Code - Insiders", None, "vscode"),
        ("VSCodium", None, "vscode"),
        ("Code - OSS", None, "vscode"),
        ("Neovim", "0.12.4", "neovim"),
        ("Neovim", "0.13.0-dev+g1234", "neovim"),
        ("Neovim", "1.0.0", "neovim"),
        ("Neovim", None, "neovim"),
        ("Neovim", "0.11.5", "neovim-0.11"),
        ("Neovim", "v0.9.1", "neovim-0.11"),
        ("IntelliJ IDEA 2026.1", None, "lsp4ij"),
        ("PyCharm 2025.3", None, "lsp4ij"),
        ("Android Studio Narwhal", None, "lsp4ij"),
        ("emacs", "30.1", "emacs"),
        ("Eglot", "1.19", "emacs"),
        ("helix", "25.07", "generic"),
        ("", None, "generic"),
    ],
)
def test_profiles_by_client_info(name: str, version: str | None, profile: str) -> None:
    assert profile_for(None, name, version).name == profile


def test_the_setting_wins() -> None:
    assert profile_for("lsp4ij", "Visual Studio Code").name == "lsp4ij"
    assert profile_for("neovim", "Neovim", "0.11.0").name == "neovim-0.11"
    assert {profile_for(name).name for name in CLIENTS} == set(CLIENTS)


def test_replace_suffix_is_the_clients_habit_unless_it_is_given() -> None:
    for value in (None, True, False):
        settings = merge(Settings(), {"draftline": {"client": "vscode", "replaceSuffix": value}})[0]
        assert settings.client == "vscode"
        for profile in (VSCODE, GENERIC):
            expected = profile.replaces_rest if value is None else value
            assert settings.completion_options(profile.replaces_rest).replaces_rest is expected


def test_no_suggestion_and_superseded() -> None:
    nothing, superseded = Answer(None, "empty"), Answer(None, "superseded", superseded=True)
    for profile in (VSCODE, NEOVIM, LSP4IJ, GENERIC):
        assert build_result(nothing, "utf-16", profile, str) == []
        assert build_result(superseded, "utf-16", profile, str) is None
    assert build_result(nothing, "utf-16", EMACS, str) is None


def cases() -> list[Any]:
    found = tomllib.loads(GOLDEN.read_text(encoding="utf-8"))["case"]
    return [pytest.param(case, id=case["name"]) for case in found]


@pytest.mark.parametrize("case", cases())
async def test_golden(case: dict[str, Any]) -> None:
    """``|`` in ``text`` is the cursor; columns are in the case's encoding."""
    before, after = case["text"].split("|")
    encoding, profile = case.get("encoding", "utf-16"), profile_for(case["client"])
    engine = FakeEngine(answer=case["says"])
    engine.start()
    store = DocumentStore(encoding)
    store.open(URI, 1, "python", before + after)
    service = CompletionService(store, lambda: engine, lambda: engine.status)
    selected = None
    if "popup" in case:
        start, end, entry = case["popup"]
        selected = (Point(case["line"], start), Point(case["line"], end), entry)
    settings = Settings(replace_suffix=case.get("replace_suffix"))
    options = settings.completion_options(profile.replaces_rest)
    answer = await service.complete(URI, Point(case["line"], case["column"]), options, selected=selected)
    result = build_result(answer, encoding, profile, lambda suggestion: "1")
    sent = converters.get_converter().unstructure(types.InlineCompletionResponse(1, result))["result"]
    assert isinstance(sent, dict) == (case["client"] == "emacs")
    (item,) = sent["items"] if isinstance(sent, dict) else sent
    ends = item["range"]["start"], item["range"]["end"]
    assert all(end["line"] == case["line"] for end in ends)
    assert [end["character"] for end in ends] == case["range"]
    assert item["insertText"] == case["insert"]
    assert item.get("filterText") == case.get("filter")
    assert ("command" in item) == (case["client"] != "lsp4ij")


def test_golden_cases_cover_every_client() -> None:
    found = [param.values[0] for param in cases()]
    assert len(found) >= 30
    assert {case["client"] for case in found} == set(CLIENTS)  # type: ignore[index]
