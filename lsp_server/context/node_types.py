"""Node types of all grammars together; no name means two things."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

FUNCTIONS = frozenset(
    {
        "constructor_declaration",
        "function_declaration",
        "function_definition",
        "function_item",
        "generator_function_declaration",
        "method",
        "method_declaration",
        "method_definition",
        "singleton_method",
    }
)
# What has members.
CONTAINERS = frozenset(
    {
        "abstract_class_declaration",
        "class",
        "class_declaration",
        "class_definition",
        "class_specifier",
        "enum_declaration",
        "impl_item",
        "interface_declaration",
        "mod_item",
        "module",
        "namespace_declaration",
        "namespace_definition",
        "record_declaration",
        "struct_declaration",
        "struct_specifier",
        "trait_declaration",
        "trait_item",
    }
)
# Import of other files, where it stands at the left margin.
IMPORTS = frozenset(
    {
        "extern_crate_declaration",
        "future_import_statement",
        "import_declaration",
        "import_from_statement",
        "import_statement",
        "namespace_use_declaration",
        "package_clause",
        "package_declaration",
        "preproc_include",
        "use_declaration",
        "using_declaration",
        "using_directive",
    }
)


def is_container(node: Node) -> bool:
    """Whether a node has members. The root of a Python file is named as a module of Ruby is."""
    return node.type in CONTAINERS and node.parent is not None


def header_stop(node: Node) -> int | None:
    """The line behind the header of a definition: behind what stands before its body, None without a body."""
    body = node.child_by_field_name("body")
    if body is None:
        return None
    before = body.prev_sibling
    while before is not None and "comment" in before.type:
        before = before.prev_sibling
    row: int = node.start_point[0] if before is None else before.end_point[0]
    return row + 1
