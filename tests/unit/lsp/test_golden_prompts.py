"""Golden prompts of each family (tests/golden/prompts/<family>.toml), with several tokenizers.

A file has the control tokens of the family's vocabulary, and cases: a text with a caret (‸) where the cursor
stands, and the prompt with its control tokens spelt out. Cases that count tokens or heal a word depend on
the tokenizer: they are for the codec of one token a character.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from inference.tokenizer import Tokenizer
from inference.weights import store
from lsp_server.completion.options import CompletionOptions
from lsp_server.completion.prompt import BuiltPrompt, PromptBuilder
from lsp_server.completion.reasons import NoSuggestion, Reason
from lsp_server.documents.text import Point, Snapshot
from lsp_server.prompts.context_files import ContextFile
from lsp_server.prompts.families import FAMILIES
from lsp_server.prompts.fim import find_format
from lsp_server.prompts.order import PROMPT_ORDERS
from tests.fake_engine import FakeCodec
from tests.tiny_models import make_tokenizer

GOLDEN = Path(__file__).parents[2] / "golden" / "prompts"
CURSOR = "‸"


@lru_cache(maxsize=64)
def golden(family: str) -> dict[str, Any]:
    return tomllib.loads((GOLDEN / f"{family}.toml").read_text(encoding="utf-8"))


def families() -> list[str]:
    return sorted(file.stem for file in GOLDEN.glob("*.toml") if file.stem != "no_format")


def cases(*, counting: bool, only: str = "") -> list[Any]:
    return [
        pytest.param(family, case, id=f"{family}: {case['name']}")
        for family in families()
        for case in golden(family)["case"]
        if only in ("", family)
        and (counting or not {"heals", "prompt_tokens", "context_tokens"} & case.keys())
    ]


class HealingCodec(FakeCodec):
    """Takes the last word, with the blank before it, out of the prompt."""

    def healing_start(self, line: str) -> int:
        return max(line.rfind(" "), 0)


def built(case: dict[str, Any], codec: Any) -> BuiltPrompt:
    before, _, after = case["text"].partition(CURSOR)
    if case.get("crlf"):
        before, after = before.replace("\n", "\r\n"), after.replace("\n", "\r\n")
    line = before.count("\n")
    snapshot = Snapshot.of(before + after, case.get("uri", ""), language_id=case.get("language", "python"))
    files = [ContextFile(file["path"], file["text"]) for file in case.get("context", [])]
    tokens = case.get("context_tokens", 1500 if files else 0)
    options = CompletionOptions(
        order=case.get("order", "line-in-middle"),
        heal="heals" in case,
        prompt_tokens=case.get("prompt_tokens", 2000) + tokens,
        context_sources=frozenset({"tabs"}),
        context_tokens=tokens,
    )
    cursor = Point(line, len(before.rpartition("\n")[2]))
    return PromptBuilder(codec, 8192).build(snapshot, cursor, options, files)


def shown(ids: tuple[int, ...], tokenizer: Tokenizer) -> str:
    names = {id: spelling for spelling, id in tokenizer.control_tokens.items()}
    runs: list[str] = []
    plain: list[int] = []
    for id in ids:
        if id in names:
            runs += (tokenizer.decode(plain), names[id])
            plain = []
        else:
            plain.append(id)
    return "".join((*runs, tokenizer.decode(plain)))


def check(case: dict[str, Any], prompt: BuiltPrompt, text: str, codec: Any) -> None:
    assert text == case["prompt"]
    assert prompt.heal == case.get("heals", "")
    controls = sum(id in codec.special_ids for id in prompt.ids)
    if "controls" in case:
        assert controls == case["controls"], "a spelling in the document became a token"


@pytest.mark.parametrize(("family", "case"), cases(counting=True))
def test_a_token_a_character(family: str, case: dict[str, Any]) -> None:
    codec = HealingCodec(tuple(golden(family)["vocabulary"]))
    prompt = built(case, codec)
    check(case, prompt, codec.show(prompt.ids), codec)
    most = case.get("prompt_tokens", 2000) + case.get("context_tokens", 1500)
    assert len(prompt.ids) <= most


@lru_cache(maxsize=64)
def pairs_of_bytes(family: str, directory: Path) -> Tokenizer:
    path = directory / f"{family}.json"
    make_tokenizer(tuple((spelling, True) for spelling in golden(family)["vocabulary"])).save(str(path))
    return Tokenizer(path)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.mark.parametrize(("family", "case"), cases(counting=False))
def test_byte_pairs(family: str, case: dict[str, Any], directory: Path) -> None:
    tokenizer = pairs_of_bytes(family, directory)
    prompt = built(case, tokenizer)
    check(case, prompt, shown(prompt.ids, tokenizer), tokenizer)


@pytest.mark.model
@pytest.mark.parametrize(("family", "case"), cases(counting=False, only="qwen2.5-coder"))
def test_the_real_tokenizer(family: str, case: dict[str, Any], real_model: str) -> None:
    tokenizer = Tokenizer(store.prepare(real_model, "int8").path / "tokenizer.json")
    prompt = built(case, tokenizer)
    check(case, prompt, shown(prompt.ids, tokenizer), tokenizer)


@pytest.mark.parametrize("name", families())
def test_the_family_is_found_by_its_vocabulary(name: str) -> None:
    codec = FakeCodec(tuple(golden(name)["vocabulary"]))
    format = find_format(codec)
    assert format is not None
    assert format.family.name == golden(name).get("family", name)
    assert format.stop_ids >= codec.special_ids
    for control in format.family.controls:
        assert codec.special(control) in format.stop_ids


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("order", PROMPT_ORDERS)
def test_every_order_shows_both_sides_once(name: str, order: str) -> None:
    codec = FakeCodec(tuple(golden(name)["vocabulary"]))
    case = {"text": "above()\nleft(‸right)\nbelow()\n", "order": order}
    prompt = codec.show(built(case, codec).ids)
    for part in ("above()\n", "left(", "right)\nbelow()\n"):
        assert prompt.count(part) == 1
    assert prompt.index("above()") < prompt.index("left(")
    if order == "spm":
        assert prompt.index("right)") < prompt.index("above()")
    if order in ("spm", "line-in-middle", "lines-in-middle"):
        assert prompt.endswith("left(") or order == "spm"


def test_every_family_has_golden_prompts() -> None:
    named = {golden(name).get("family", name) for name in families()}
    assert named == {family.name for family in FAMILIES}
    assert sum(len(golden(name)["case"]) for name in families()) >= 40


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in golden("no_format")["case"]]
)
def test_no_format(case: dict[str, Any]) -> None:
    builder = PromptBuilder(FakeCodec(tuple(case["vocabulary"])), 4096)
    assert builder.format is None
    with pytest.raises(NoSuggestion) as none:
        builder.build(Snapshot.of("x"), Point(0, 1), CompletionOptions())
    assert none.value.reason == Reason.NO_FIM
