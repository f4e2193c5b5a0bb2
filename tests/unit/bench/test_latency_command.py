"""Which systems the latency bench types into."""

from __future__ import annotations

import argparse

import pytest

from bench.commands import latency
from lsp_server.commands.switches import WrongUsage, settings_from


def _args(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    latency.add_arguments(parser.add_subparsers())
    return parser.parse_args(["latency", *words])


def test_sources_of_context_make_a_second_system() -> None:
    args = _args("--sources", "imports,accepted", "--max-new-tokens", "40")
    plain, more = latency._editors(args, settings_from(args))
    assert (plain.name, more.name) == ("draftline", "draftline +imports+accepted")
    settings = more.describe()["settings"]
    assert settings["contextSources"] == ["imports", "accepted"] and settings["maxNewTokens"] == 40
    assert "contextSources" not in plain.describe()["settings"]


def test_an_unknown_source_is_told_before_anything_starts() -> None:
    with pytest.raises(WrongUsage, match="acepted is none of scope, imports, "):
        latency.run(_args("--sources", "acepted"))
