"""Characters and spellings that no source text should get from a model."""

from __future__ import annotations

import re

from lsp_server.completion.filters.context import FilterContext

# Broken characters, control characters but tab and newline, marks that turn the reading direction
# (they hide what code does), and a byte order mark inside a text.
_CHARACTERS = re.compile("[\ufffd\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
# Special tokens that a model spells out in ordinary ones.
_TOKENS = re.compile(
    r"<[|\uff5c][A-Za-z][\w\u2581-]{0,40}[|\uff5c]>"
    r"|<(?:fim_(?:prefix|suffix|middle|pad)|file_sep|repo_name|gh_stars|endoftext"
    r"|issue_start|jupyter_(?:start|code|text|output)|empty_output|end_of_turn|start_of_turn)>"
    # Not <PRE>, which is HTML, nor the argument of a template.
    r"|(?<!\w)<(?:SUF|MID|EOT)>"
    r"|</s>|\[/INST\]"
)
# Languages in which </s> is a tag that people write.
_TAGGED = frozenset(
    {"html", "xml", "vue", "svelte", "astro", "php", "javascriptreact", "typescriptreact", "markdown", "mdx"}
)


def control(text: str, context: FilterContext) -> str | None:
    """Cut at the first of them; None if nothing stands before it.

    What the document itself has near the cursor is not foreign there, nor is a string of nothing else.
    """
    around = "\n".join((*context.lines_above, context.head, context.rest, *context.lines_below))
    for pattern in (_CHARACTERS, _TOKENS):
        for match in pattern.finditer(text):
            found = match.group()
            if found in around or _is_quoted(text, match) or _is_tag(found, text[: match.start()], context):
                continue
            text = text[: match.start()].rstrip()
            break
    return text or None


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    before, after = text[: match.start()][-1:], text[match.end() :][:1]
    return before == after and before in ("'", '"', "`")


def _is_tag(found: str, before: str, context: FilterContext) -> bool:
    """``</s>`` as markup: by the language, or in a string or template that has opened it."""
    return found == "</s>" and (context.language_id in _TAGGED or "<s>" in context.head + before)
