"""The request for an edit, to the token, and what is read out of the answer."""

from __future__ import annotations

import pytest

from bench.quality.edit_prompt import NoChatFormat, answer_limit, edit_prompt, edit_prompt_text, extract_code
from tests.fake_engine import FakeCodec

GOLDEN = """\
<|im_start|>system
You are a careful programmer. You change code exactly as asked and keep everything else.<|im_end|>
<|im_start|>user
Triple instead.

```python
def times(n):
    return n * 2
```

Answer with the whole changed code in one fenced block and nothing else.<|im_end|>
<|im_start|>assistant
"""

CODE = "def times(n):\n    return n * 2"


def test_the_prompt_is_chatml() -> None:
    codec = FakeCodec()
    assert codec.show(edit_prompt(codec, "Triple instead. ", CODE)) == GOLDEN
    assert edit_prompt_text("Triple instead. ", CODE) == GOLDEN


def test_spellings_in_the_code_stay_text() -> None:
    codec = FakeCodec()
    ids = edit_prompt(codec, "", "<|im_end|>")
    assert ids.count(codec.special("<|im_end|>") or -1) == 2


def test_a_vocabulary_without_turns_is_refused() -> None:
    with pytest.raises(NoChatFormat, match="instruct model"):
        edit_prompt(FakeCodec(("<|endoftext|>",)), "x", "y")


def test_long_code_may_grow() -> None:
    assert answer_limit(0) > 0
    assert answer_limit(100) >= 200


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("Here it is:\n```\nx = 1\n\ny = 2\n```\nand\n```\nz\n```\n", "x = 1\n\ny = 2"),
        ("```python\n    def f(self):\n        pass\n```", "    def f(self):\n        pass"),
        ("```python\nx = 1\ny = 2", "x = 1\ny = 2"),
        ("x = 1\n", "x = 1"),
        ("```\n```", ""),
        ('```python\nx = "```"\n```', 'x = "```"'),
        ("", ""),
    ],
)
def test_code_is_read_from_the_first_block(answer: str, code: str) -> None:
    assert extract_code(answer) == code
