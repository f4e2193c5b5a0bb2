"""Grammars by language, each imported when a document of its language is first parsed.

A language without a grammar, or whose package is missing or broken, is worked on by rules over its text.
"""

from __future__ import annotations

import importlib
import logging
import threading
from typing import TYPE_CHECKING

from lsp_server.documents.languages import canonical

if TYPE_CHECKING:
    from tree_sitter import Language, Parser

_log = logging.getLogger(__name__)

# LSP language identifiers -> (package, function that returns the grammar).
GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    # Without the markup around it: a piece of a file that does not show where it begins.
    "php-only": ("tree_sitter_php", "language_php_only"),
    "shellscript": ("tree_sitter_bash", "language"),
    "html": ("tree_sitter_html", "language"),
    "css": ("tree_sitter_css", "language"),
    "json": ("tree_sitter_json", "language"),
    "jsonc": ("tree_sitter_json", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "scala": ("tree_sitter_scala", "language"),
    "swift": ("tree_sitter_swift", "language"),
}

# None: it could not be loaded, which is said once.
_languages: dict[str, Language | None] = {}


class _OfThread(threading.local):
    """A parser must not be used by two threads at once."""

    def __init__(self) -> None:
        self.parsers: dict[str, Parser] = {}


_of_thread = _OfThread()


def parser_for(language_id: str) -> Parser | None:
    """This thread's parser, or None for a language without a (working) grammar."""
    name = canonical(language_id)
    parser = _of_thread.parsers.get(name)
    if parser is None and (language := _language(name)) is not None:
        from tree_sitter import Parser

        parser = _of_thread.parsers[name] = Parser(language)
    return parser


def _language(name: str) -> Language | None:
    if name not in GRAMMARS:
        return None
    if name not in _languages:
        _languages[name] = _load(name)
    return _languages[name]


def _load(name: str) -> Language | None:
    package, function = GRAMMARS[name]
    try:
        from tree_sitter import Language

        return Language(getattr(importlib.import_module(package), function)())
    except Exception as error:  # a package built for another tree-sitter raises what it likes
        _log.warning("no grammar for %s, its text is judged by simpler rules: %s", name, error)
        return None
