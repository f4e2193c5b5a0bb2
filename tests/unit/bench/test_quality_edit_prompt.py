"""The request for an edit, to the token, and what the simplest reading takes of an answer."""

from __future__ import annotations

import pytest

from bench.quality.edit_prompt import cut_at_fence, edit_limit, edit_prompt, prompt_text
from tests.fake_engine import FakeCodec

GOLDEN = """\
<|im_start|>system
You are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>
<|im_start|>user
```python
def times(n):
    return n * 2
```

Triple instead.<|im_end|>
<|im_start|>assistant
```python
"""

CODE = "def times(n):\n    return n * 2"


def test_the_prompt_is_the_server_s() -> None:
    codec = FakeCodec()
    prompt = edit_prompt(codec, "Triple instead. ", CODE)
    assert codec.show(prompt.ids) == prompt_text(codec, prompt.ids) == GOLDEN
    assert codec.decode(list(prompt.ids[slice(*prompt.source)])) == CODE + "\n"
    assert edit_limit(prompt) >= 2 * len(CODE)


def test_a_method_is_shown_without_the_indentation_of_its_class() -> None:
    prompt = edit_prompt(FakeCodec(), "x", "    def f(self):\n        pass")
    assert "```python\ndef f(self):\n    pass\n```" in FakeCodec().show(prompt.ids)


def test_a_vocabulary_without_turns_gets_plain_text() -> None:
    codec = FakeCodec(("<|endoftext|>",))
    prompt = edit_prompt(codec, "Triple.", CODE)
    assert prompt_text(codec, prompt.ids) == codec.decode(list(prompt.ids))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("x = 1\n```", "x = 1"),
        ("x = 1\n\ny = 2\n```\nand\n```\nz\n```\n", "x = 1\n\ny = 2"),
        ("x = 1\ny = 2", "x = 1\ny = 2"),
        ("x = 1\n", "x = 1"),
        ("```", ""),
        ('x = "```"\n```', 'x = "```"'),
        ("", ""),
    ],
)
def test_code_ends_at_the_fence(answer: str, code: str) -> None:
    assert cut_at_fence(answer, "```") == code
