"""Inline edits of clients that say no, know no versions, or count columns in another way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.client import Client, RequestFailed, place
from tests.e2e.test_inline_edit import ANSWER, CAPABILITIES, RANGE, TEXT, URI, asked, session

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DOUBTFUL = TEXT.replace("return s", "return (s") + "```"
COMMAND = {"command": "draftline.server.edit", "arguments": [asked()]}


def typing(client: Client) -> Any:
    """The user goes on writing while the question stands there, and then agrees."""

    def answer(params: Any) -> Any:
        client.change(URI, "# ", (0, 0))
        return {"title": "Apply anyway"}

    return answer


async def test_an_edit_agreed_to_after_the_text_has_changed_is_not_applied(start: Any) -> None:
    client = await session(start, answer=DOUBTFUL)
    edits: list[Any] = []
    client.handlers["workspace/applyEdit"] = lambda params: edits.append(params) or {"applied": True}
    client.handlers["window/showMessageRequest"] = typing(client)
    answer = await client.request("workspace/executeCommand", COMMAND)
    assert (answer["applied"], answer["reason"], edits) == (False, "stale", [])
    params = {"textDocument": {"uri": URI}, "range": RANGE, "context": {"diagnostics": []}}
    actions = await client.request("textDocument/codeAction", params)
    resolved = await client.request("codeAction/resolve", actions[0])
    assert "edit" not in resolved
    said = [params["message"] for method, params in client.notifications if method == "window/showMessage"]
    assert len(said) == 2 and all("changed meanwhile" in message for message in said)
    await client.shutdown()


async def test_a_client_that_does_not_apply_is_quoted(start: Any) -> None:
    client = await session(start, answer=ANSWER)
    refusal = {"applied": False, "failureReason": "read-only buffer"}
    client.handlers["workspace/applyEdit"] = lambda params: refusal
    answer = await client.request("workspace/executeCommand", COMMAND)
    assert not answer["applied"] and answer["reason"] and "read-only buffer" in answer["message"]

    del client.handlers["workspace/applyEdit"]  # now it answers what is no result of this request
    answer = await client.request("workspace/executeCommand", COMMAND)
    assert not answer["applied"] and answer["reason"]
    await client.shutdown()


async def test_problems_elsewhere_are_no_reason_to_offer_to_fix_them(start: Any) -> None:
    client = await session(start, answer=ANSWER)

    async def titles(first: int, last: int, end: dict[str, int]) -> list[str]:
        problem = {"range": {"start": place(first, 0), "end": place(last, 3)}, "message": "slow"}
        params = {
            "textDocument": {"uri": URI},
            "range": {"start": place(2, 0), "end": end},
            "context": {"diagnostics": [problem]},
        }
        return [action["title"] for action in await client.request("textDocument/codeAction", params)]

    fix = "Draftline: Fix the problems here"
    end = place(3, 9)
    assert fix in await titles(0, 2, end) and fix in await titles(3, 3, end)
    assert fix not in await titles(0, 1, end) and fix not in await titles(999, 999, end)
    assert fix not in await titles(3, 3, place(3, 0)), "whole lines end at the start of the next one"
    with pytest.raises(RequestFailed) as failure:
        await client.request("draftline/inlineEdit", asked(diagnostics=[{"message": "no range"}]))
    assert failure.value.code == -32602
    await client.shutdown()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("versions", [True, False])
async def test_columns_behind_characters_of_any_width(start: Any, encoding: str, versions: bool) -> None:
    # The password is not shown to the model, and the columns behind it stay what the client counts.
    secret = 'URL = "https://ann:Kf8\u00fcL2q9\u00df\U0001d5317Zw\u20ac3@host/"  # \U0001f40d'
    text = f"{secret}\nx = 1\n"
    client: Client = await start(answer=f"{hidden(secret)}\nTRIES = 3\nx = 1\n```")
    capabilities: dict[str, Any] = {**CAPABILITIES, "general": {"positionEncodings": [encoding]}}
    if not versions:
        capabilities["workspace"] = {"applyEdit": True}
    await client.initialize(capabilities=capabilities)
    await client.ready()
    client.open(URI, text)
    whole = {"start": place(0, 0), "end": place(2, 0)}
    answer = await client.request("draftline/inlineEdit", {**asked(), "range": whole})
    assert answer["reason"] == "", answer["message"]
    edit = answer["edit"]
    (change,) = edit["documentChanges"][0]["edits"] if versions else edit["changes"][URI]
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    end = len(secret.encode(encoding if width == 1 else f"{encoding}-le")) // width
    assert change["range"] == {"start": place(0, end), "end": place(0, end)}
    assert change["newText"] == "\nTRIES = 3"
    await client.shutdown()


def hidden(line: str) -> str:
    """As the model sees it."""
    from lsp_server.context.secrets import redact

    assert redact(line) != line
    return str(redact(line))
