"""Source "imports": what the file imports, kept when the window begins below it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsp_server.context.node_types import IMPORTS
from lsp_server.context.related import KeptLines
from lsp_server.documents.text import Snapshot

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

RANK = 100
_MOST = 60
# Node types do not tell these from other calls and declarations.
_REQUIRE = re.compile(r"^(?:(?:const|let|var)\s.*=\s*require\(|require(?:_relative)?[\s(]|mod\s+\w+;)")


def import_lines(snapshot: Snapshot, line: int, tree: Tree | None) -> list[KeptLines]:
    """Imports above ``line``, in order; none for a language without a grammar."""
    if tree is None:
        return []
    found: list[KeptLines] = []
    for node in tree.root_node.children:
        first = node.start_point[0]
        if first >= line or len(found) == _MOST:
            break
        if _imports(node, snapshot.lines[first]):
            # Some grammars count the line end to the node.
            stop = node.end_point[0] + (node.end_point[1] > 0)
            stop = min(max(stop, first + 1), line)
            if found and found[-1].stop > first:
                continue
            found.append(KeptLines(first, stop, snapshot.lf(first, stop), RANK + len(found)))
    return found


def _imports(node: Node, line: str) -> bool:
    return node.type in IMPORTS or _REQUIRE.match(line) is not None
