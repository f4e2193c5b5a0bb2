"""How a language writes a comment that is one line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LineComment:
    """What stands before and behind the text of a comment; ``close`` is "" where the line's end ends it."""

    open: str
    close: str = ""

    def wrap(self, text: str) -> str:
        """``text`` (no line end in it) as a comment; its blanks at the end are lost."""
        if self.close:
            # Text that ends the comment would be code behind it.
            text = text.replace(self.close, "")
        return " ".join(part for part in (self.open, text.rstrip(), self.close) if part)


_HASH, _SLASHES, _DASHES = LineComment("#"), LineComment("//"), LineComment("--")
_SEMICOLONS, _PERCENT = LineComment(";;"), LineComment("%")
_C_BLOCK, _MARKUP = LineComment("/*", "*/"), LineComment("<!--", "-->")

# Identifiers as in LSP 3.18, ``TextDocumentItem``, and those that editors use beside them.
_BY_LANGUAGE: dict[str, LineComment] = {
    **dict.fromkeys(
        (
            "coffeescript",
            "cmake",
            "conf",
            "dockerfile",
            "elixir",
            "fish",
            "gdscript",
            "graphql",
            "hcl",
            "julia",
            "just",
            "make",
            "makefile",
            "nim",
            "nix",
            "perl",
            "perl6",
            "powershell",
            "properties",
            "python",
            "r",
            "ruby",
            "sh",
            "bash",
            "zsh",
            "shellscript",
            "starlark",
            "terraform",
            "toml",
            "yaml",
        ),
        _HASH,
    ),
    **dict.fromkeys(
        (
            "c",
            "cpp",
            "csharp",
            "cuda-cpp",
            "d",
            "dart",
            "fsharp",
            "glsl",
            "go",
            "groovy",
            "java",
            "javascript",
            "javascriptreact",
            "json5",
            "jsonc",
            "kotlin",
            "less",
            "objective-c",
            "objective-cpp",
            "php",
            "proto",
            "proto3",
            "rust",
            "sass",
            "scala",
            "scss",
            "solidity",
            "swift",
            "typescript",
            "typescriptreact",
            "v",
            "verilog",
            "systemverilog",
            "zig",
        ),
        _SLASHES,
    ),
    **dict.fromkeys(("ada", "elm", "haskell", "lua", "sql", "vhdl"), _DASHES),
    **dict.fromkeys(("clojure", "commonlisp", "lisp", "racket", "scheme"), _SEMICOLONS),
    **dict.fromkeys(("bibtex", "erlang", "latex", "matlab", "prolog", "tex"), _PERCENT),
    **dict.fromkeys(("html", "markdown", "svelte", "vue", "xml", "xsl", "svg"), _MARKUP),
    "css": _C_BLOCK,
    "ocaml": LineComment("(*", "*)"),
    "ini": LineComment(";"),
    "fortran": LineComment("!"),
    "vb": LineComment("'"),
    "vim": LineComment('"'),
    "viml": LineComment('"'),
    "restructuredtext": LineComment(".."),
    "bat": LineComment("REM"),
}


def line_comment(language_id: str) -> LineComment | None:
    """The comment of a language, None if it has none (JSON, plain text) or it is not known."""
    return _BY_LANGUAGE.get(language_id)
