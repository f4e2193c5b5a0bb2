"""What may differ from one completion request to the next."""

from __future__ import annotations

from dataclasses import dataclass

from inference.api import Draft
from lsp_server.prompts.order import PromptOrder


@dataclass(frozen=True)
class CompletionOptions:
    """How to generate. The names are those of the settings; ``max_lines`` 0 means no limit.

    ``prompt_tokens`` bounds the prompt below what the context would hold: a new window is read at the speed
    of prefill, and that is what a user waits for.

    ``heal`` lets the model choose anew how the last piece before the cursor is divided into tokens.

    ``order`` is that of the prompt's parts (see prompts/order.py). Without healing the orders that put the
    cursor's line behind the middle marker cost quality.

    ``filters_off`` are names of filters and stop rules that are left out.

    ``context_sources`` are names in `lsp_server.context.related`; what they give takes ``context_tokens`` of
    ``prompt_tokens`` at most.
    """

    max_new_tokens: int = 128
    prompt_tokens: int = 1024
    max_lines: int = 10
    temperature: float = 0.0
    seed: int = 0
    draft: Draft | None = None
    use_cache: bool = True
    digest_logits: bool = False
    replaces_rest: bool = False
    heal: bool = True
    order: PromptOrder = "spm"
    filters_off: frozenset[str] = frozenset()
    context_sources: frozenset[str] = frozenset()
    context_tokens: int = 256


@dataclass(frozen=True)
class Selected:
    """The popup entry that the suggestion must extend: its text and where it begins (characters)."""

    text: str
    start: int
    end: int
