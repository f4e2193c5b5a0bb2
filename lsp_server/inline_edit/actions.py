"""Ready-made edits as code actions (LSP 3.18, ``textDocument/codeAction``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.documents.syntax import SyntaxTree
from lsp_server.documents.text import Snapshot

# Larger documents get actions for a selection only: a tree would take too long.
_MAX_CHARS = 500_000


@dataclass(frozen=True)
class Action:
    """Attributes:
    id: in the action's data.
    title: what the user sees.
    instruction: what the model is asked for.
    needs_problems: only where the client reports diagnostics.
    """

    id: str
    title: str
    instruction: str
    needs_problems: bool = False


ACTIONS: tuple[Action, ...] = (
    Action("fix", "Fix the problems here", "Fix the problems reported.", needs_problems=True),
    Action("docstring", "Add a docstring", "Add a docstring (or doc comment) and change nothing else."),
    Action("types", "Add types", "Add type annotations to parameters, results and variables that lack them."),
    Action("simplify", "Simplify", "Simplify the code without changing what it does."),
    Action("explain", "Explain in a comment", "Add comments that explain what the code does; keep the code."),
    Action("test", "Write a test", "Keep the code as it is and add a test function for it below."),
)

_DEFINITION = re.compile(r"function|method|class|struct|impl|interface|trait|enum|constructor|definition")
# Names of parts of definitions, and of what uses them.
_NO_DEFINITION = re.compile(
    r"call|invocation|reference|literal|struct_(?:expression|pattern)|initializer"
    r"|declarator|param|modifier|heritage|body|variant|bound|constraint"
)


def action(id: str) -> Action | None:
    """By its id."""
    return next((action for action in ACTIONS if action.id == id), None)


def enclosing_definition(snapshot: Snapshot, line: int) -> tuple[int, int] | None:
    """First line and line after the last one of the innermost definition around a line.

    None in a language without a grammar, or outside of any definition.
    """
    if sum(map(len, snapshot.lines)) > _MAX_CHARS:
        return None
    tree = SyntaxTree().tree(snapshot)
    if tree is None:
        return None
    text = snapshot.line(line)
    column = len(text[: len(text) - len(text.lstrip())].encode("utf-8", "replace"))
    node = tree.root_node.descendant_for_point_range((line, column), (line, column))
    while node is not None and node.parent is not None:
        first, last = node.start_point[0], node.end_point[0] - (node.end_point[1] == 0)
        if node.is_named and last > first and _is_definition(node.type):
            return first, last + 1
        node = node.parent
    return None


def _is_definition(kind: str) -> bool:
    return bool(_DEFINITION.search(kind)) and not _NO_DEFINITION.search(kind)
