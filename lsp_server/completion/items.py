"""From an answer to what the client is sent."""

from __future__ import annotations

from collections.abc import Callable

from lsprotocol import types

from lsp_server import protocol
from lsp_server.completion.clients import ClientProfile
from lsp_server.completion.pipeline import Suggestion
from lsp_server.completion.service import Answer
from lsp_server.documents.positions import PositionEncoding, to_units

# The result of ``textDocument/inlineCompletion``.
Result = types.InlineCompletionList | list[types.InlineCompletionItem] | None


def build_result(
    answer: Answer, encoding: PositionEncoding, profile: ClientProfile, name: Callable[[Suggestion], str]
) -> Result:
    """What the request is answered with; ``name`` gives an item its id for the accepted command.

    Nothing is ``[]`` for most clients: Neovim would keep showing what it has on ``null``, which is right
    only while another answer is on its way.
    """
    if answer.suggestion is None:
        return None if answer.superseded or profile.nothing_is_null else []

    def item(suggestion: Suggestion) -> types.InlineCompletionItem:
        text, range = suggestion.text, suggestion.range
        replaced = answer.line[range.start : range.end]
        command = types.Command("Accepted", protocol.ACCEPTED, arguments=[name(suggestion)])
        return types.InlineCompletionItem(
            insert_text=text,
            filter_text=_filter_text(text, replaced) if profile.filter_text else None,
            range=types.Range(
                types.Position(answer.row, to_units(answer.line, range.start, encoding)),
                types.Position(answer.row, to_units(answer.line, range.end, encoding)),
            ),
            command=command if profile.command else None,
        )

    items = [item(suggestion) for suggestion in (answer.suggestion, *answer.others)]
    return types.InlineCompletionList(items) if profile.item_list else items


def _filter_text(text: str, replaced: str) -> str:
    """The inserted text, with the replaced text behind it if that is not in it.

    VS Code hides an item whose filter text does not contain the replaced characters in their order; blanks
    in front of a bracket that is replaced need not be in the suggestion. The inserted text comes first, so
    that typing along it goes on matching.
    """
    characters = iter(text)
    return text if all(char in characters for char in replaced) else text + replaced
