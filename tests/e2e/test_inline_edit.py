"""Inline edits over stdio: the own request, code actions, the command; made-up engine and real one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import Client, RequestFailed, place

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

URI = "file:///work/project/main.py"
TEXT = "def total(prices):\n    s = 0\n    for p in prices:\n        s = s + p\n    return s\n"
ANSWER = TEXT.replace("s = s + p", "s += p") + "```\nDone."
RANGE = {"start": place(0, 0), "end": place(5, 0)}
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
    "workspace": {"workspaceEdit": {"documentChanges": True}, "applyEdit": True},
    "textDocument": {
        "codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}},
    },
}


def asked(version: int = 1, **more: Any) -> dict[str, Any]:
    document = {"uri": URI, "version": version}
    return {"textDocument": document, "range": RANGE, "instruction": "Use an augmented assignment.", **more}


def applied(text: str, edit: dict[str, Any], version: int = 1) -> str:
    (change,) = edit["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": version}
    lines = text.split("\n")
    for one in reversed(change["edits"]):
        start, end = one["range"]["start"], one["range"]["end"]
        before = "\n".join([*lines[: start["line"]], lines[start["line"]][: start["character"]]])
        after = "\n".join([lines[end["line"]][end["character"] :], *lines[end["line"] + 1 :]])
        lines = (before + one["newText"] + after).split("\n")
    return "\n".join(lines)


async def session(start: Any, **behaviour: Any) -> Client:
    client: Client = await start(**behaviour)
    await client.initialize(capabilities=CAPABILITIES)
    await client.ready()
    client.open(URI, TEXT)
    return client


async def test_the_request_streams_and_answers_with_a_versioned_edit(start: Any) -> None:
    client = await session(start, answer=ANSWER)
    answer = await client.request("draftline/inlineEdit", asked(partialResultToken="p", workDoneToken="w"))
    assert applied(TEXT, answer["edit"]) == TEXT.replace("s = s + p", "s += p")
    assert answer["reason"] == "" and answer["flags"] == [] and answer["summary"]
    assert answer["hunks"][0]["spans"]
    progress = [params for method, params in client.notifications if method == "$/progress"]
    partial = [params["value"] for params in progress if params["token"] == "p"]
    streamed = [hunk for value in partial for hunk in value["hunks"]]
    assert streamed == answer["hunks"][: len(streamed)] and streamed
    kinds = [params["value"]["kind"] for params in progress if params["token"] == "w"]
    assert kinds[0] == "begin" and kinds[-1] == "end" and "report" in kinds
    assert (await client.request("draftline/inlineEdit/warmUp", asked()))["read"]
    assert await client.shutdown() == 0
    assert client.violations == []


async def test_answers_without_an_edit(start: Any) -> None:
    client = await session(start, answer=ANSWER)
    stale = await client.request("draftline/inlineEdit", asked(version=3))
    assert (stale["edit"], stale["reason"]) == (None, "stale") and stale["message"]
    empty = {**asked(), "range": {"start": place(2, 0), "end": place(2, 0)}}
    assert (await client.request("draftline/inlineEdit", empty))["reason"] == "empty-selection"
    with pytest.raises(RequestFailed) as failure:
        await client.request("draftline/inlineEdit", {"textDocument": {"uri": URI}})
    assert failure.value.code == -32602
    await client.shutdown()


async def test_cancelling_by_either_way(start: Any) -> None:
    client = await session(start, answer=ANSWER, step_seconds=0.05)
    id, pending = client.send("draftline/inlineEdit", asked())
    await asyncio.sleep(0.3)
    client.cancel(id)
    with pytest.raises(RequestFailed) as failure:
        await asyncio.wait_for(pending, 10)
    assert failure.value.code == -32800
    _, pending = client.send("draftline/inlineEdit", asked(workDoneToken="w"))
    await client.notification("$/progress", lambda params: params["token"] == "w")
    client.notify("window/workDoneProgress/cancel", {"token": "w"})
    answer = await asyncio.wait_for(pending, 10)
    assert (answer["edit"], answer["reason"]) == (None, "cancelled")
    await client.shutdown()


async def test_code_actions_are_resolved_lazily(start: Any) -> None:
    client = await session(start, answer=ANSWER)
    context = {"diagnostics": [{"range": RANGE, "message": "slow"}]}
    params = {"textDocument": {"uri": URI}, "range": RANGE, "context": context}
    actions = await client.request("textDocument/codeAction", params)
    assert [action["title"] for action in actions][:2] == [
        "Draftline: Fix the problems here",
        "Draftline: Add a docstring",
    ]
    assert all("edit" not in action and action["kind"] == "refactor.rewrite" for action in actions)
    resolved = await client.request("codeAction/resolve", actions[0])
    assert applied(TEXT, resolved["edit"]) == TEXT.replace("s = s + p", "s += p")
    only = {**params, "context": {"diagnostics": [], "only": ["quickfix"]}}
    assert await client.request("textDocument/codeAction", only) == []
    cursor = {**params, "range": {"start": place(3, 5), "end": place(3, 5)}, "context": {"diagnostics": []}}
    around = await client.request("textDocument/codeAction", cursor)
    assert around[0]["data"]["range"]["start"]["line"] == 0
    await client.shutdown()


async def test_the_command_lets_the_client_apply(start: Any) -> None:
    client = await session(start, answer=ANSWER)
    edits: list[Any] = []

    def apply(params: Any) -> dict[str, bool]:
        edits.append(params["edit"])
        return {"applied": True}

    client.handlers["workspace/applyEdit"] = apply
    command = {"command": "draftline.server.edit", "arguments": [asked()]}
    answer = await client.request("workspace/executeCommand", command)
    assert answer["applied"] and applied(TEXT, edits[0]) == TEXT.replace("s = s + p", "s += p")
    await client.shutdown()


async def test_a_secret_stays_and_an_edit_of_it_is_refused(start: Any) -> None:
    key = "AKIA" + "IOSFODNN7QRSTUVW"
    text = f'def f():\n    key = "{key}"\n    tries = 3\n    return key\n'
    hidden = text.replace(key, "x" * len(key))
    whole = {"start": place(0, 0), "end": place(4, 0)}
    for said, reason in ((hidden.replace("3", "5"), ""), (hidden.replace("key", "token"), "secret")):
        client: Client = await start(answer=said + "```")
        await client.initialize(capabilities=CAPABILITIES)
        await client.ready()
        client.open(URI, text)
        answer = await client.request("draftline/inlineEdit", {**asked(), "range": whole})
        assert answer["reason"] == reason
        if reason:
            assert answer["edit"] is None and answer["message"]
        else:
            assert applied(text, answer["edit"]) == text.replace("3", "5")
        await client.shutdown()


async def test_a_cell_of_a_notebook(start: Any) -> None:
    client: Client = await start(answer=ANSWER)
    await client.initialize(capabilities=CAPABILITIES)
    await client.ready()
    cell = "vscode-notebook-cell:/work/project/n.ipynb#c1"
    document = {"uri": cell, "languageId": "python", "version": 1, "text": TEXT}
    notebook = {
        "uri": "file:///work/project/n.ipynb",
        "notebookType": "jupyter-notebook",
        "version": 1,
        "cells": [{"kind": 2, "document": cell}],
    }
    client.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": [document]})
    params = {**asked(), "textDocument": {"uri": cell, "version": 1}}
    answer = await client.request("draftline/inlineEdit", params)
    (change,) = answer["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": cell, "version": 1}
    assert change["edits"][0]["newText"] == "        s += p"
    await client.shutdown()


@pytest.mark.parametrize("choice", ["Apply anyway", "Leave it"])
async def test_a_doubtful_edit_is_asked_about(start: Any, choice: str) -> None:
    client = await session(start, answer=TEXT.replace("return s", "return (s") + "```")
    edits: list[Any] = []
    client.handlers["workspace/applyEdit"] = lambda params: edits.append(params) or {"applied": True}
    client.handlers["window/showMessageRequest"] = lambda params: {"title": choice}
    command = {"command": "draftline.server.edit", "arguments": [asked()]}
    answer = await client.request("workspace/executeCommand", command)
    assert answer["flags"] == ["parse-error"]
    assert bool(edits) == answer["applied"] == (choice == "Apply anyway")
    await client.shutdown()


@pytest.mark.model
async def test_the_real_model_edits_through_code_actions(start: Any, tmp_path: Path) -> None:
    client: Client = await start("--threads", "2", fake=False)
    await client.initialize(capabilities=CAPABILITIES)
    await client.ready()
    client.open(URI, TEXT)
    params = {"textDocument": {"uri": URI}, "range": RANGE, "context": {"diagnostics": []}}
    actions = await client.request("textDocument/codeAction", params)
    docstring = next(action for action in actions if action["title"].endswith("docstring"))
    client.handlers["window/showMessageRequest"] = lambda params: {"title": "Apply anyway"}
    resolved = await client.request("codeAction/resolve", docstring, timeout=120)
    changed = applied(TEXT, resolved["edit"])
    assert '"""' in changed and "for p in prices" in changed
    # Cancelled in the middle, nothing comes back and the next request is answered.
    id, pending = client.send("codeAction/resolve", docstring)
    await asyncio.sleep(0.2)
    client.cancel(id)
    with pytest.raises(RequestFailed) as failure:
        await asyncio.wait_for(pending, 30)
    assert failure.value.code == -32800
    again = await client.request("codeAction/resolve", docstring, timeout=120)
    assert applied(TEXT, again["edit"]) == changed
    assert await client.shutdown() == 0
