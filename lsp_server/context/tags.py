"""Definitions in a text: name, signature and the first line of the documentation."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.context.node_types import is_container
from lsp_server.context.tag_queries import QUERIES
from lsp_server.documents.syntax import parser_for

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

MAX_TAGS = 1000
_SIGNATURE_LINES, _TYPE_LINES = 4, 8
_LINE_CHARS = 160
_DOC_CHARS = 100
_COMMENT_MARKS = re.compile(r"^[\s/*#!]+|[\s*/]+$")
_XML = re.compile(r"</?\w+[^>]*>")
_STRING_MARKS = re.compile(r"^[rRbBuUfF]*(?:\"\"\"|'''|\"|')|(?:\"\"\"|'''|\"|')$")
# Definitions that the documentation above is not a neighbour of.
_WRAPPERS = frozenset(
    {
        "const_declaration",
        "decorated_definition",
        "export_statement",
        "lexical_declaration",
        "template_declaration",
        "type_declaration",
    }
)
_IMPORTED = re.compile(r"=\s*(?:await\s+)?(?:require|import)\s*\(")

# Neither a parser nor a query of tree-sitter may be used by two threads at once.
_own = threading.local()


@dataclass(frozen=True)
class Tag:
    """One definition.

    Attributes:
        first, stop: its lines.
        shown: signature, indented as in the file, and documentation; lines with ``\\n``.
        container: the header of the class and the like around it, "" at the top.
        container_name: its name.
        is_class: it has members.
    """

    name: str
    first: int
    stop: int
    shown: str
    container: str = ""
    container_name: str = ""
    is_class: bool = False


def tags_of(text: str, language_id: str) -> tuple[Tag, ...]:
    """The definitions in ``text`` (``\\n`` line ends), in order; none for a language without a query.

    Safe to call from several threads.
    """
    tools = _tools(language_id)
    if tools is None:
        return ()
    from tree_sitter import QueryCursor

    parser, query = tools
    source = text.encode("utf-8", "replace")
    root = parser.parse(source).root_node
    lines = text.split("\n")
    found: dict[tuple[int, str], Tag] = {}
    for _, captures in QueryCursor(query).matches(root):
        name = _text(captures["name"][0])
        kind = next(kind for kind in ("class", "type", "definition") if kind in captures)
        node = captures[kind][0]
        if node.type == "variable_declarator" and _IMPORTED.search(lines[node.start_point[0]]):
            continue
        tag = _tag(name, kind, node, lines, language_id)
        # A typedef of a structure defines the name twice.
        found.setdefault((tag.first, name), tag)
        if len(found) == MAX_TAGS:
            break
    return tuple(sorted(found.values(), key=lambda tag: tag.first))


def _tools(language_id: str) -> tuple[Parser, Query] | None:
    known: dict[str, tuple[Parser, Query] | None] | None = getattr(_own, "tools", None)
    if known is None:
        known = _own.tools = {}
    if language_id not in known:
        shared = parser_for(language_id) if language_id in QUERIES else None
        if shared is None or shared.language is None:
            return None
        from tree_sitter import Parser, Query

        known[language_id] = (Parser(shared.language), Query(shared.language, QUERIES[language_id]))
    return known[language_id]


def _tag(name: str, kind: str, node: Node, lines: list[str], language_id: str) -> Tag:
    container = node.parent
    while container is not None and not is_container(container):
        container = container.parent
    shown = _first_lines(node, lines) if kind == "type" else _signature(node, lines, kind, language_id)
    doc = _documentation(node, lines, language_id)
    inside = language_id == "python" and kind != "type"
    shown = shown + doc if inside else doc + shown
    if inside and not doc and shown.rstrip().endswith(":"):
        shown = shown.rstrip() + " ...\n"
    header, container_name = "", ""
    if container is not None:
        header = _signature(container, lines, "container", language_id)
        named = container.child_by_field_name("name") or container.child_by_field_name("type")
        container_name = "" if named is None else _text(named)
    first, stop = node.start_point[0], node.end_point[0] + 1
    return Tag(name, first, stop, shown, header, container_name, kind == "class")


def _signature(node: Node, lines: list[str], kind: str, language_id: str) -> str:
    """Whole lines from the definition's first one up to its body."""
    body = node.child_by_field_name("body")
    value = node.child_by_field_name("value")
    if body is None and value is not None:
        body = value.child_by_field_name("body")  # const f = (x) => { ... }
    first = node.start_point[0]
    if body is None:
        end_row, end_column = node.end_point
        if end_column == 0 and end_row > first:
            end_row -= 1
        text = "\n".join(lines[first : min(end_row + 1, first + _SIGNATURE_LINES)])
        return _bounded(text.rstrip())
    row, byte = body.start_point
    line = lines[row] if row < len(lines) else ""
    before = line.encode("utf-8", "replace")[:byte].decode("utf-8", "replace")
    text = "\n".join([*lines[first:row], before]).rstrip().removesuffix("{").rstrip()
    if language_id not in ("python", "ruby"):
        text += " {" if kind in ("class", "container") else " { ... }" if text.endswith("=>") else ";"
    return _bounded(text)


def _first_lines(node: Node, lines: list[str]) -> str:
    first = node.start_point[0]
    return _bounded("\n".join(lines[first : min(node.end_point[0] + 1, first + _TYPE_LINES)]), _TYPE_LINES)


def _bounded(text: str, most: int = _SIGNATURE_LINES) -> str:
    return "".join(line[:_LINE_CHARS].rstrip() + "\n" for line in text.split("\n")[:most])


def _documentation(node: Node, lines: list[str], language_id: str) -> str:
    """The first line of it, as a line of its own; "" if there is none."""
    text = lines[node.start_point[0]]
    indent = text[: len(text) - len(text.lstrip())]
    if language_id == "python":
        body = node.child_by_field_name("body")
        first = body.named_children[0] if body is not None and body.named_children else None
        if first is None or first.type != "expression_statement" or first.named_children[0].type != "string":
            return ""
        words = _said(_STRING_MARKS.sub("", _text(first)))
        indent += "\t" if indent.startswith("\t") else "    "
        return f'{indent}"""{words}"""\n' if words else ""
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    top, comment = node.start_point[0], node.prev_named_sibling
    found = ""
    while comment is not None and "comment" in comment.type:
        # A comment behind code belongs to that code; some grammars count the line end to the comment.
        end = comment.end_point[0] - (comment.end_point[1] == 0)
        if end != top - 1 or lines[comment.start_point[0]][: comment.start_point[1]].strip():
            break
        top, found = comment.start_point[0], _text(comment) + "\n" + found
        comment = comment.prev_named_sibling
    words = _said(found)
    return f"{indent}{'#' if language_id == 'ruby' else '//'} {words}\n" if words else ""


def _said(text: str) -> str:
    """The first line that says something."""
    for line in text.split("\n"):
        words = _COMMENT_MARKS.sub("", _XML.sub("", line)).strip()
        if words:
            return words[:_DOC_CHARS]
    return ""


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
