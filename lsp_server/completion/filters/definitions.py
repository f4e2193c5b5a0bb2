"""Lines that begin a definition, by the rules of a family of languages."""

from __future__ import annotations

import re

# A name before parentheses that is one of these is a statement or an expression.
_KEYWORDS = frozenset(
    {
        "if",
        "elif",
        "else",
        "for",
        "foreach",
        "while",
        "do",
        "until",
        "unless",
        "switch",
        "match",
        "case",
        "when",
    }
    | {"catch", "with", "return", "yield", "throw", "goto", "assert", "await", "co_await", "new", "delete"}
    | {"typeof", "sizeof", "and", "or", "not", "in", "is", "function", "super", "this", "using", "lock"}
    | {"synchronized", "case"}
)
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async|sealed|readonly"
    r"|synchronized|native|default|partial|unsafe|extern|inline|constexpr|explicit|friend|open|suspend|data"
    r"|export|declare|get|set|strictfp|transient|volatile|fileprivate|mutating|operator|infix|lateinit)\s+)"
)
_TYPES = r"(?:class|interface|enum|struct|record|trait|object|namespace|union|protocol|extension|module)\s+\w"

_PYTHON = re.compile(r"(?:async\s+)?def\s+\w|class\s+\w")
_RUBY = re.compile(r"def\s+\w|class\s+\w|module\s+\w")
_GO = re.compile(r"func\s*(?:\(|\w)|type\s+\w+")
_RUST = re.compile(
    r"(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|extern(?:\s+\"[^\"]*\")?)\s+)*"
    r"(?:fn|struct|enum|trait|impl|mod|union)\b[\s<]*\w|macro_rules!"
)
_SCRIPT = re.compile(
    rf"{_MODIFIERS}*(?:function\b\s*\*?\s*\w|{_TYPES}|type\s+\w+[^=]*=)"
    r"|(?:export\s+)?(?:const|let)\s+\w+\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*(?::[^=]+)?=>\s*\{"
    rf"|{_MODIFIERS}*[*#]?(?P<name>\w+)\s*(?:<[^>(]*>)?\([^;]*\)\s*(?::[^;{{]+)?\{{\s*\Z"
)
_LUA = re.compile(r"(?:local\s+)?function\b")
# Java, C, C++, C#, Kotlin, Swift, Scala, PHP, Dart: a keyword, or types and a name before parentheses, with
# nothing behind them but what may stand before a body.
_BRACES = re.compile(
    rf"{_MODIFIERS}*(?:{_TYPES}|template\s*<|fun\s+[\w<]|func\s+\w|def\s+\w|function\s+\w)"
    rf"|{_MODIFIERS}*(?:[A-Za-z_][\w:.]*(?:<[^;()]*>)?(?:\[\])*[\s*&]+)+(?P<name>~?[\w:]+)\s*"
    r"\([^;]*\)\s*(?:const|noexcept|override|final|throws\s+[\w,.\s]+|\s)*\{?\s*\Z"
    rf"|{_MODIFIERS}+(?P<other>\w+)\s*\([^;]*\)\s*(?:throws\s+[\w,.\s]+)?\{{\s*\Z"
)
_ANY = re.compile(r"(?:async\s+)?(?:def|class|function|func|fn|fun|impl|trait|interface)\s+\w")

_SCRIPT_LANGUAGES = ("javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte")
_BRACE_LANGUAGES = (
    *("java", "c", "cpp", "csharp", "kotlin", "swift"),
    *("scala", "php", "dart", "groovy", "objective-c"),
)
_BY_LANGUAGE = {
    "python": _PYTHON,
    "ruby": _RUBY,
    "elixir": re.compile(r"defp?\s+\w|defmodule\s"),
    "go": _GO,
    "rust": _RUST,
    "lua": _LUA,
    **dict.fromkeys(_SCRIPT_LANGUAGES, _SCRIPT),
    **dict.fromkeys(_BRACE_LANGUAGES, _BRACES),
}
# Longer ones are data or generated, and some patterns take the square of the length.
_LONGEST_LINE = 500
# What belongs to the definition on the next line.
_LEADING = re.compile(r"@\w|#\[|#|//|/\*|\*|--|\[\w+[^\]]*\]\s*\Z|template\s*<")


def begins_definition(line: str, language_id: str) -> bool:
    """Whether a line begins the definition of a function, method or type."""
    if len(line) > _LONGEST_LINE:
        return False
    match = _BY_LANGUAGE.get(language_id, _ANY).match(line.strip())
    if match is None:
        return False
    first = re.match(r"\w+", line.strip())
    if first is not None and first.group() in _KEYWORDS - {"function"}:
        return False
    return all(name not in _KEYWORDS for name in match.groupdict().values() if name)


def leads_definition(line: str) -> bool:
    """Whether a line is a comment, decorator or attribute, as they stand before a definition."""
    return _LEADING.match(line.strip()) is not None
