"""Pieces of a source file that a programmer writes in one go, found in its parse tree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.records import ItemKind
from lsp_server.documents.syntax import parser_for

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MIN_CHARS, MAX_CHARS = 8, 400
FUNCTION_LINES = range(3, 26)  # the docstring aside
BLOCK_LINES = range(2, 11)

# Node types of all grammars together; no name means two things.
_FUNCTIONS = frozenset(
    {
        "arrow_function",
        "closure_expression",
        "constructor_declaration",
        "func_literal",
        "function_declaration",
        "function_definition",
        "function_expression",
        "function_item",
        "generator_function",
        "generator_function_declaration",
        "lambda_expression",
        "method_declaration",
        "method_definition",
    }
)
_BLOCKS = frozenset({"block", "compound_statement", "constructor_body", "statement_block"})
# The nodes around a block that make it one of a statement: if_statement, if_expression, elif_clause, ...
_STATEMENTS = (
    *("if_", "else_", "elif_", "for_", "enhanced_for_", "while_", "loop_", "do_", "with_"),
    *("try_", "catch_", "except_", "finally_"),
)
_ATTEMPTS = 5  # at a random cut in a function


@dataclass(frozen=True)
class Piece:
    """A span of a text, in characters. ``function`` is where the innermost function around it begins."""

    kind: ItemKind
    start: int
    end: int
    function: int


def header_language(text: str) -> str:
    """What a ``.h`` file is, which its name does not tell: "cpp" if that grammar understands more of it."""
    c, cpp = _parse(text, "c"), _parse(text, "cpp")
    return "cpp" if c and cpp and _errors(c.root_node) > _errors(cpp.root_node) else "c"


def pieces(text: str, language: str, generator: random.Random) -> list[Piece]:
    """All bodies, blocks and whole lines of functions in ``text``, and a cut line of each function.

    None begins or ends with a blank except a cut line, which may begin with one, and none consists of
    comments or docstrings only. Pieces of more than one line are left out if the file says the same
    elsewhere. Functions that do not parse are left out.

    Args:
        text: with ``\\n`` line ends.
        language: an LSP language identifier; one without a grammar has no pieces.
        generator: chooses the cut lines and where they are cut.
    """
    tree = _parse(text, language)
    if tree is None:
        return []
    finder = _Finder(text, tree, generator)
    return [piece for piece in finder.found() if finder.suits(piece)]


def _parse(text: str, language: str) -> Tree | None:
    parser = parser_for(language)
    return None if parser is None else parser.parse(text.encode("utf-8", "replace"))


def _errors(node: Node) -> int:
    if not node.has_error:
        return 0
    return int(node.is_error or node.is_missing) + sum(map(_errors, node.children))


class _Finder:
    def __init__(self, text: str, tree: Tree, generator: random.Random) -> None:
        self._text = text
        self._source = text.encode("utf-8", "replace")
        self._root = tree.root_node
        self._generator = generator
        self._stripped = [line.strip() for line in text.split("\n")]

    def found(self) -> Iterator[Piece]:
        """Without the checks of ``suits``."""
        stack: list[tuple[Node, int | None]] = [(self._root, None)]
        while stack:
            node, function = stack.pop()
            body = node.child_by_field_name("body") if node.type in _FUNCTIONS else None
            if body is not None and body.type in _BLOCKS and not node.has_error:
                function = node.start_byte
                yield from self._of_body(node, body)
            elif function is not None and _is_block_of_statement(node):
                yield from self._of_block(node, function)
            stack.extend((child, function) for child in reversed(node.named_children))

    def suits(self, piece: Piece) -> bool:
        """Length and uniqueness."""
        removed = self._text[piece.start : piece.end]
        if not MIN_CHARS <= len(removed) <= MAX_CHARS:
            return False
        lines = [line.strip() for line in removed.split("\n")]
        return len(lines) == 1 or self._count(lines) == 1

    def _count(self, lines: list[str]) -> int:
        """How often these lines stand in the file, however indented."""
        return sum(
            self._stripped[i : i + len(lines)] == lines
            for i, line in enumerate(self._stripped)
            if line == lines[0]
        )

    def _of_body(self, node: Node, body: Node) -> Iterator[Piece]:
        statements = _statements(body)
        span = self._whole_lines(statements, body)
        if span is None:
            return
        # One line for the header, and one for the bracket that closes the body.
        height = _rows(statements) + 1 + (node.end_point.row > statements[-1].end_point.row)
        if height in FUNCTION_LINES:
            yield Piece("body", *span, node.start_byte)
        yield from self._lines(statements, body, node.start_byte)
        yield from self._cut(span, node.start_byte)

    def _of_block(self, block: Node, function: int) -> Iterator[Piece]:
        statements = _statements(block)
        span = self._whole_lines(statements, block)
        if span is None:
            return
        if _rows(statements) in BLOCK_LINES:
            yield Piece("block", *span, function)
        yield from self._lines(statements, block, function)

    def _lines(self, statements: list[Node], block: Node, function: int) -> Iterator[Piece]:
        for statement in statements:
            span = self._whole_lines([statement], block)
            if span is not None and "\n" not in self._text[slice(*span)]:
                yield Piece("line", *span, function)

    def _whole_lines(self, statements: list[Node], block: Node) -> tuple[int, int] | None:
        """From the first statement to the end of the last one's line; None if they share lines with
        what is around them in ``block`` or before it."""
        if not statements:
            return None
        first, last = statements[0], statements[-1]
        start = self._index(first.start_byte)
        line_start = self._text.rfind("\n", 0, start) + 1
        # Nodes of preprocessor lines include the line end.
        end = start + len(self._text[start : self._index(last.end_byte)].rstrip())
        line_end = self._text.find("\n", end)
        line_end = len(self._text) if line_end < 0 else line_end
        bracket = block.children[-1]
        closed_here = bracket.type == "}" and self._index(bracket.start_byte) < line_end
        if closed_here or self._text[line_start:start].strip():
            return None
        return start, start + len(self._text[start:line_end].rstrip())

    def _cut(self, span: tuple[int, int], function: int) -> Iterator[Piece]:
        """The rest of a random line, cut at a random column behind its first character."""
        starts = [span[0]]
        while (after := self._text.find("\n", starts[-1], span[1]) + 1) > 0:
            starts.append(after)
        for _ in range(_ATTEMPTS):
            start = self._generator.choice(starts)
            line = self._text[start:].split("\n", 1)[0].rstrip()
            first = len(line) - len(line.lstrip()) + 1
            if len(line) - first < MIN_CHARS:
                continue
            cut = self._generator.randint(first, len(line) - MIN_CHARS)
            if self._is_code(start + cut):
                yield Piece("rest-of-line", start + cut, start + len(line), function)
                return

    def _is_code(self, index: int) -> bool:
        """Whether the next word belongs to no comment, docstring or string of several lines."""
        index += len(self._text[index:]) - len(self._text[index:].lstrip())
        byte = len(self._text[:index].encode("utf-8", "replace"))
        node = self._root.descendant_for_byte_range(byte, byte + 1)
        while node is not None:
            if "comment" in node.type or (
                "string" in node.type and node.start_point.row < node.end_point.row
            ):
                return False
            if _is_docstring(node):
                return False
            node = node.parent
        return True

    def _index(self, byte: int) -> int:
        """Characters before a byte of the source."""
        return byte if len(self._source) == len(self._text) else len(self._source[:byte].decode("utf-8"))


def _is_block_of_statement(node: Node) -> bool:
    return node.type in _BLOCKS and node.parent is not None and node.parent.type.startswith(_STATEMENTS)


def _statements(block: Node) -> list[Node]:
    """What a block does: its statements from the first to the last, comments between them included."""
    children = block.named_children
    if len(children) == 1 and children[0].type == "statement_list":  # Go
        children = children[0].named_children
    telling = [
        i for i, child in enumerate(children) if "comment" not in child.type and not _is_docstring(child)
    ]
    return children[telling[0] : telling[-1] + 1] if telling else []


def _is_docstring(node: Node) -> bool:
    return node.type == "expression_statement" and [child.type for child in node.children] == ["string"]


def _rows(statements: list[Node]) -> int:
    return statements[-1].end_point.row - statements[0].start_point.row + 1
