"""The prompt of an edit as token ids.

The instruction comes last: everything before it can be read while the user still types it. The prompt opens
the fence of the answer itself, so the first token of the answer is code, and there is no room for chatter.

Instruct models get ChatML turns (openai/openai-python, chatml.md), which Qwen2.5-Coder's are trained on;
vocabularies without their tokens get an example in plain text. The turns are as plain as can be: on EditEval
(arXiv 2310.20329) the smallest model leaves more code as it is when it is told to be careful, to answer with
nothing else, or shown an example first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inference.api import TextCodec
from lsp_server.documents.positions import without_surrogates
from lsp_server.inline_edit.answer import fence_for
from lsp_server.inline_edit.context import EditContext

Form = Literal["chat", "few-shot"]

START, END = "<|im_start|>", "<|im_end|>"
# What Qwen2.5's own chat template says where nothing else is said.
SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

# What a model without turns is shown first. Its answers end at the fence, as the example's does.
_EXAMPLE = """\
Code to change:
```python
def area(w, h):
    return w * h
```
Instruction: Name the parameters in full.
Changed code:
```python
def area(width, height):
    return width * height
```

"""


@dataclass(frozen=True)
class EditPrompt:
    """Attributes:
    ids: the prompt.
    stable: tokens at its begin that do not depend on the instruction.
    source: first and last + 1 index of the tokens of the code, which the answer mostly copies.
    fence: what ends the answer, on a line of its own.
    stop_ids: tokens that end it too.
    """

    ids: tuple[int, ...]
    stable: int
    source: tuple[int, int]
    fence: str
    stop_ids: frozenset[int]


def form_of(codec: TextCodec) -> Form:
    """The form that a vocabulary allows."""
    turns = codec.special(START) is not None and codec.special(END) is not None
    return "chat" if turns else "few-shot"


def edit_prompt(
    codec: TextCodec,
    instruction: str,
    lines: Sequence[str],
    language: str = "",
    context: EditContext | None = None,
    form: Form | None = None,
) -> EditPrompt:
    """The prompt for a changed version of ``lines``.

    The document's text and the instruction are encoded as plain text: the spelling of a control token inside
    them never becomes that token.
    """
    context = context or EditContext()
    form = form or form_of(codec)
    fence = fence_for(lines)
    about = _about(context, language, fence)
    heading = "Code to change:\n" if about or form == "few-shot" else ""
    before = f"{about}{heading}{fence}{language}\n"
    code = "".join(line + "\n" for line in lines)
    after = f"{fence}\n" + _problems(context)
    asked = " ".join(instruction.split())
    opened = f"{fence}{language}\n"
    build = _Builder(codec)
    if form == "chat":
        build.special(START)
        build.text(f"system\n{SYSTEM}")
        build.special(END)
        build.text("\n")
        build.special(START)
        build.text(f"user\n{before}")
    else:
        build.text(_EXAMPLE + before)
    source = build.text(code)
    build.text(after)
    stable = len(build.ids)
    if form == "chat":
        build.text(f"\n{asked}")
        build.special(END)
        build.text("\n")
        build.special(START)
        build.text(f"assistant\n{opened}")
    else:
        build.text(f"Instruction: {asked}\nChanged code:\n{opened}")
    return EditPrompt(tuple(build.ids), stable, source, fence, codec.end_ids | codec.special_ids)


def answer_limit(code_tokens: int) -> int:
    """Tokens that an answer may take: the code may double, and something may be written anew."""
    return 2 * code_tokens + 128


class _Builder:
    def __init__(self, codec: TextCodec) -> None:
        self._codec = codec
        self.ids: list[int] = []

    def text(self, text: str) -> tuple[int, int]:
        """Append text; first index and end of its tokens."""
        start = len(self.ids)
        self.ids += self._codec.encode(without_surrogates(text))
        return start, len(self.ids)

    def special(self, spelling: str) -> None:
        id = self._codec.special(spelling)
        assert id is not None, "form_of looked"
        self.ids.append(id)


def _about(context: EditContext, language: str, fence: str) -> str:
    lines = [*context.imports, *context.heads]
    if not lines:
        return ""
    return (
        f"It stands in this file:\n{fence}{language}\n"
        + "".join(f"{line}\n" for line in lines)
        + f"{fence}\n"
    )


def _problems(context: EditContext) -> str:
    if not context.problems:
        return ""
    return "Problems reported:\n" + "".join(f"- {problem}\n" for problem in context.problems)
