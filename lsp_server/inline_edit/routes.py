"""The routes of inline edit: its own requests, code actions and the command, all by one service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.documents.store import Withheld
from lsp_server.inline_edit import wire
from lsp_server.inline_edit.actions import ACTIONS, action, enclosing_definition
from lsp_server.inline_edit.reasons import FLAG_MESSAGES, NoEdit, NoEditError
from lsp_server.inline_edit.rewrite import Progress
from lsp_server.inline_edit.selection import Selection
from lsp_server.inline_edit.service import EditAnswer, EditOptions, EditRequest, EditService, refused

if TYPE_CHECKING:
    from lsp_server.server import DraftlineServer

_log = logging.getLogger(__name__)

EDIT = "draftline.server.edit"
_KIND = types.CodeActionKind.RefactorRewrite
_APPLY, _LEAVE = "Apply anyway", "Leave it"


def register(server: DraftlineServer) -> EditService:
    """Add the routes to a server."""
    routes = _Routes(server)

    # Functions: pygls sets attributes on handlers, which bound methods do not take.
    async def inline_edit(ls: Any, params: Any) -> Any:
        return await routes.inline_edit(params)

    async def warm_up(ls: Any, params: Any) -> Any:
        return await routes.warm_up(params)

    def code_actions(ls: Any, params: types.CodeActionParams) -> list[types.CodeAction]:
        return routes.code_actions(params)

    async def resolve(ls: Any, params: types.CodeAction) -> types.CodeAction:
        return await routes.resolve(params)

    async def command(ls: Any, *arguments: Any) -> Any:
        return await routes.command(*arguments)

    server.feature(wire.INLINE_EDIT)(inline_edit)
    server.feature(wire.WARM_UP)(warm_up)
    options = types.CodeActionOptions(code_action_kinds=[_KIND], resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(code_actions)
    server.feature(types.CODE_ACTION_RESOLVE)(resolve)
    server.command(EDIT)(command)
    return routes.service


class _Routes:
    def __init__(self, server: DraftlineServer) -> None:
        self._server = server
        self.service = EditService(server.store, lambda: server.host.engine, lambda: server.host.status)

    async def inline_edit(self, params: Any) -> dict[str, Any]:
        """``draftline/inlineEdit``."""
        params = wire.plain(params)
        request = self._request(params)
        partial, work = params.get("partialResultToken"), params.get("workDoneToken")
        sent = 0

        def show(selection: Selection, progress: Progress) -> None:
            nonlocal sent
            if partial is None:
                return
            value = wire.progress_json(selection, progress, sent)
            sent = len(progress.hunks)
            self._server.protocol.notify(types.PROGRESS, types.ProgressParams(token=partial, value=value))

        answer = await self._edit(request, work, show)
        return wire.answer_json(answer, self._as_json(answer))

    async def warm_up(self, params: Any) -> dict[str, bool]:
        """``draftline/inlineEdit/warmUp``."""
        request = self._request(params, needs_instruction=False)
        return {"read": await self.service.warm_up(request, self._server.refusal)}

    def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The ready-made edits for a selection, or for the definition around the cursor."""
        only = params.context.only
        if only and not any(
            _KIND.value == kind or _KIND.value.startswith(f"{kind}.") for kind in map(_text, only)
        ):
            return []
        server, uri = self._server, params.text_document.uri
        try:
            snapshot = server.store.get(uri).snapshot()
        except Withheld:
            return []
        if server.refusal(snapshot) is not None:
            return []
        range, problems = params.range, list(params.context.diagnostics)
        if range.start == range.end:
            found = enclosing_definition(snapshot, min(range.start.line, len(snapshot.lines) - 1))
            if found is None:
                return []
            range = wire.ranges_of(snapshot, *found, server.store.encoding)
        data = {
            "textDocument": {"uri": uri, "version": snapshot.version},
            "range": _range_json(range),
            "diagnostics": [
                {"range": _range_json(problem.range), "message": _text(problem.message)}
                for problem in problems
            ],
        }
        # Some clients send all problems of the document, and the edit can mend those of its lines alone.
        told = wire.request_of(data, needs_instruction=False).diagnostics
        # What ends at the very start of a line does not contain that line, as in a selection.
        stop = range.end.line + bool(range.end.character)
        mendable = any(problem.within(range.start.line, stop) for problem in told)
        lazily = self._resolves()
        actions = []
        for ready in ACTIONS:
            if ready.needs_problems and not mendable:
                continue
            made = types.CodeAction(title=f"Draftline: {ready.title}", kind=_KIND)
            if lazily:
                made.data = {**data, "action": ready.id}
            else:
                arguments = [{**data, "instruction": ready.instruction}]
                made.command = types.Command(made.title, EDIT, arguments=arguments)
            actions.append(made)
        return actions

    async def resolve(self, params: types.CodeAction) -> types.CodeAction:
        """``codeAction/resolve``: now the model is asked."""
        data = wire.plain(params.data)
        ready = action(str(data.get("action", ""))) if isinstance(data, dict) else None
        if ready is None:
            return params
        request = self._request({**data, "instruction": ready.instruction})
        answer = await self._agreed(await self._edit(request, None))
        params.edit = self._workspace_edit(answer)
        return params

    async def command(self, *arguments: Any) -> dict[str, Any]:
        """``workspace/executeCommand``: asks the model and lets the client apply the edit.

        One argument: the parameters of ``draftline/inlineEdit``.
        """
        request = self._request(arguments[0] if arguments else None)
        asked = await self._edit(request, None)
        answer = await self._agreed(asked)
        edit = self._workspace_edit(answer)
        applied = False
        if edit is not None:
            applied, why = await self._apply(edit)
            if not applied:
                answer = EditAnswer(NoEdit.STALE.value, f"The editor did not apply the edit{why}; ask again.")
        elif not answer.reason:
            answer = asked  # the user knows of the doubts and left it
        return {**wire.answer_json(answer, None), "applied": applied}

    async def _apply(self, edit: types.WorkspaceEdit) -> tuple[bool, str]:
        """Whether the client has applied an edit, and if not, what it said."""
        params = types.ApplyWorkspaceEditParams(edit=edit, label="Draftline edit")
        try:
            result = await self._server.workspace_apply_edit_async(params)
        except Exception as error:
            _log.warning("the client refused an edit: %s", error)
            return False, f": {error}"
        return result.applied, f": {result.failure_reason}" if result.failure_reason else ""

    def _request(self, params: Any, *, needs_instruction: bool = True) -> EditRequest:
        request = wire.request_of(params, needs_instruction=needs_instruction)
        # A cell is as writable as its notebook's file.
        return replace(request, path=wire.path_of(self._server.notebooks.owner(request.uri)))

    async def _edit(
        self,
        request: EditRequest,
        work: Any,
        show: Callable[[Selection, Progress], None] = lambda selection, progress: None,
    ) -> EditAnswer:
        settings = self._server.settings_of(request.uri)
        options = EditOptions(settings.temperature, settings.seed, not settings.no_cache)
        done = _WorkDone(self._server, work)

        def report(selection: Selection, progress: Progress) -> None:
            done.report(progress.kept, len(selection.lines))
            show(selection, progress)

        edit = asyncio.ensure_future(self.service.edit(request, options, report, self._server.refusal))
        done.begin(edit)
        try:
            return await edit
        except asyncio.CancelledError:
            if not done.cancelled:
                edit.cancel()
                raise
            return refused(NoEditError(NoEdit.CANCELLED))
        except Exception:
            _log.exception("an edit failed")
            return refused(NoEditError(NoEdit.ERROR))
        finally:
            done.end()

    async def _agreed(self, answer: EditAnswer) -> EditAnswer:
        """``answer`` if it has an edit, and no doubt that the user has not waved aside; else one without.
        Says what is wrong."""
        rewritten, selection = answer.rewritten, answer.selection
        if rewritten is not None and selection is not None and rewritten.flags:
            if not await self._wanted("; ".join(FLAG_MESSAGES[flag] for flag in rewritten.flags)):
                return EditAnswer()
            # The question may have stood there for long, and not every client looks at the version.
            if self._server.store.version(selection.snapshot.uri) != selection.snapshot.version:
                answer = refused(NoEditError(NoEdit.STALE))
        if answer.rewritten is None:
            self._server.say(f"Draftline: {answer.message or answer.reason}", types.MessageType.Warning)
        return answer

    async def _wanted(self, doubts: str) -> bool:
        question = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=f"Draftline: {doubts}. Apply it?",
            actions=[types.MessageActionItem(_APPLY), types.MessageActionItem(_LEAVE)],
        )
        try:
            chosen = await self._server.window_show_message_request_async(question)
        except Exception as error:
            _log.warning("the client did not ask the user: %s", error)
            return False
        return chosen is not None and chosen.title == _APPLY

    def _workspace_edit(self, answer: EditAnswer) -> types.WorkspaceEdit | None:
        return wire.workspace_edit(answer, self._server.store.encoding, versioned=self._versioned())

    def _as_json(self, answer: EditAnswer) -> Any:
        edit = self._workspace_edit(answer)
        return None if edit is None else self._server.protocol._converter.unstructure(edit)

    def _versioned(self) -> bool:
        workspace = self._server.client_capabilities.workspace
        return bool(workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes)

    def _resolves(self) -> bool:
        document = self._server.client_capabilities.text_document
        support = document and document.code_action
        lazily = support and support.resolve_support and "edit" in support.resolve_support.properties
        return bool(support and support.data_support and lazily)


class _WorkDone:
    """The client's progress for one edit, and its button to cancel it."""

    def __init__(self, server: DraftlineServer, token: Any) -> None:
        self._server, self._token = server, token
        self.cancelled = False
        self._percentage = -1

    def begin(self, task: asyncio.Future[EditAnswer]) -> None:
        if self._token is None:
            return
        progress = self._server.work_done_progress
        progress.begin(
            self._token,
            types.WorkDoneProgressBegin(title="Draftline: editing", cancellable=True, percentage=0),
        )

        def cancel(future: Any) -> None:
            if future.cancelled():
                self.cancelled = True
                task.cancel()

        progress.tokens[self._token].add_done_callback(cancel)

    def report(self, kept: int, lines: int) -> None:
        percentage = 100 * kept // max(lines, 1)
        if self._token is not None and percentage > self._percentage:
            self._percentage = percentage
            self._server.work_done_progress.report(
                self._token, types.WorkDoneProgressReport(percentage=percentage)
            )

    def end(self) -> None:
        if self._token is not None:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
            self._server.work_done_progress.tokens.pop(self._token, None)


def _range_json(range: types.Range) -> dict[str, Any]:
    return {
        "start": {"line": range.start.line, "character": range.start.character},
        "end": {"line": range.end.line, "character": range.end.character},
    }


def _text(value: Any) -> str:
    """Of an enumeration, markup content or text."""
    return str(getattr(value, "value", value))
