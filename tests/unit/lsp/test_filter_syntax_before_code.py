from __future__ import annotations

from lsp_server.completion.filters import FilterContext
from lsp_server.completion.filters.syntax import syntax

ADD = "def add(a, b):\n    return a + b\n"


def suggested(after: str) -> str | None:
    context = FilterContext(rest=after.partition("\n")[0], language_id="python", after=after)
    return syntax("def subtract(a, b):", context)


def test_a_head_without_a_body_does_not_go_before_another() -> None:
    assert suggested(ADD) is None


def test_on_a_line_of_its_own_its_body_may_come_next() -> None:
    assert suggested("\n\n\n" + ADD) == "def subtract(a, b):"


def test_no_comment_in_front_of_code() -> None:
    context = FilterContext(
        head="pri", rest="(area(r))", language_id="python", before="pri", after="(area(r))\n"
    )
    assert syntax("nt(1)  # prints", context) is None
    assert syntax("nt", context) == "nt"


def test_a_comment_may_stand_in_front_of_nothing() -> None:
    context = FilterContext(head="pri", language_id="python", before="pri", after="\n")
    assert syntax("nt(1)  # prints", context) == "nt(1)  # prints"


def test_a_hash_within_a_comment_or_a_string_begins_none() -> None:
    for head, rest in (("# see ", " and more"), ('x = "see ', ' and more"')):
        context = FilterContext(head=head, rest=rest, language_id="python", before=head, after=rest + "\n")
        assert syntax("issue # 1", context) == "issue # 1"
