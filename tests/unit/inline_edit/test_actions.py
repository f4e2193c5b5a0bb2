"""What an action without a selection is about: the definition around the cursor."""

from __future__ import annotations

import pytest

from lsp_server.documents.text import Snapshot
from lsp_server.inline_edit.actions import enclosing_definition

PYTHON = """\
class A:
    def f(self):
        print(
            1,
        )

x = 1
"""
JAVA = """\
class A {
    void f() {
        System.out.println(
            1
        );
    }
}
"""
C = """\
#define LOOP(x) \\
    f(x)
int a;
int f(int a,
      int b)
{
    return a + b;
}
"""
RUST = """\
fn f() -> P {
    P {
        x: 1,
        y: 2,
    }
}
"""
LUA = """\
function f()
  print(
    1
  )
end
"""


@pytest.mark.parametrize(
    ("language", "text", "line", "lines"),
    [
        ("python", PYTHON, 3, (1, 5)),
        ("python", PYTHON, 0, (0, 5)),
        ("python", PYTHON, 6, None),
        ("java", JAVA, 3, (1, 6)),
        ("c", C, 4, (3, 8)),
        ("c", C, 1, (0, 2)),
        ("rust", RUST, 2, (0, 6)),
        ("lua", LUA, 2, (0, 5)),
        ("plaintext", PYTHON, 1, None),
    ],
)
def test_the_definition_and_no_call_or_literal_in_it(
    language: str, text: str, line: int, lines: tuple[int, int] | None
) -> None:
    assert enclosing_definition(Snapshot.of(text, language_id=language), line) == lines
