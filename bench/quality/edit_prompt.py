"""Asking an instruct model for an edit, and reading its answer.

The turns are ChatML (openai/openai-python, chatml.md), which Qwen2.5-Coder's instruct models are trained on.
"""

from __future__ import annotations

import re

from inference.api import TextCodec
from inference.errors import DraftlineError

SYSTEM = "You are a careful programmer. You change code exactly as asked and keep everything else."

START, END = "<|im_start|>", "<|im_end|>"

_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)


class NoChatFormat(DraftlineError):
    """The model is not one that answers ChatML turns."""

    code = "no-chat-format"


def edit_prompt(codec: TextCodec, instruction: str, code: str) -> tuple[int, ...]:
    """Token ids of the request for an edit, up to where the answer begins.

    Raises:
        NoChatFormat: the vocabulary has no tokens for turns.
    """
    start, end = codec.special(START), codec.special(END)
    if start is None or end is None:
        raise NoChatFormat(
            f"The model's vocabulary has no {START} and {END}, so it cannot be asked for edits.",
            "Choose an instruct model of the Qwen family, or leave the edits out.",
        )
    ids: list[int] = []
    for role, text in _turns(instruction, code):
        ids += [start, *codec.encode(f"{role}\n{text}"), end, *codec.encode("\n")]
    return (*ids, start, *codec.encode("assistant\n"))


def edit_prompt_text(instruction: str, code: str) -> str:
    """The same request as text, for systems with another vocabulary."""
    turns = "".join(f"{START}{role}\n{text}{END}\n" for role, text in _turns(instruction, code))
    return f"{turns}{START}assistant\n"


def answer_limit(code_tokens: int) -> int:
    """Tokens that the answer may take: the code may double, and the fence and a sentence come along."""
    return 2 * code_tokens + 128


def extract_code(text: str) -> str:
    """The first fenced block of an answer, also if it was never closed; without one the whole text."""
    block = _FENCE.search(text)
    return (block[1] if block else text).removesuffix("\n")


def _turns(instruction: str, code: str) -> tuple[tuple[str, str], ...]:
    request = (
        f"{instruction.strip()}\n\n```python\n{code}\n```\n\n"
        "Answer with the whole changed code in one fenced block and nothing else."
    )
    return ("system", SYSTEM), ("user", request)
