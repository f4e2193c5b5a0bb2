"""Loading a second, smaller model that drafts for the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inference.api import EngineConfig
from inference.drafting.draft_model import DraftModel
from inference.errors import VocabularyMismatch
from inference.hardware import Hardware
from inference.model.config import ModelConfig
from inference.model.decoder import Decoder
from inference.model.fused.library import Library
from inference.model.linear.short_head import ShortHead
from inference.model.loader import load_decoder
from inference.tokenizer import Tokenizer
from inference.weights.progress import Progress
from inference.weights.store import PreparedModel, prepare

# How GGUF files spell ids that a vocabulary was padded with.
_PADDING = re.compile(rb"\[PAD\d+\]")


@dataclass(frozen=True)
class DraftFiles:
    """A draft model on this disk, not loaded."""

    name: str
    prepared: PreparedModel
    config: ModelConfig

    @property
    def longest(self) -> int:
        """Tokens that it can read."""
        return min(self.config.max_position, self.config.sliding_window or self.config.max_position)


def find_draft_model(options: EngineConfig, progress: Progress) -> DraftFiles | None:
    """The draft model of the options, converted if need be; None if they name none.

    Raises:
        DraftlineError: as `weights.store.prepare`.
    """
    if options.draft_model is None:
        return None
    prepared = prepare(
        options.draft_model, options.numerics, allow_download=options.allow_download, progress=progress
    )
    return DraftFiles(options.draft_model, prepared, ModelConfig.from_hf(prepared.config))


def check_vocabularies(target: PreparedModel, tokenizer: Tokenizer, draft: DraftFiles) -> None:
    """Whether each token of the target is the same token of the draft model.

    The tables may be padded to different lengths, and the draft model may have tokens of its own behind them.

    Args:
        tokenizer: of the target.

    Raises:
        VocabularyMismatch: naming the first token that differs.
    """
    if draft.config.vocab_size >= tokenizer.vocab_size and _same_file(target, draft.prepared):
        return
    other = Tokenizer(draft.prepared.tokenizer)
    control = {id: spelling for spelling, id in tokenizer.control_tokens.items()}
    for id in range(tokenizer.vocab_size):
        spelling = control.get(id)
        token = tokenizer.token_bytes(id)
        if spelling is None and (not token or _PADDING.fullmatch(token)):
            continue  # no token
        there = id < draft.config.vocab_size
        if spelling is not None:
            same = there and other.special(spelling) == id
        else:
            same = there and other.token_bytes(id) == token
        if not same:
            shown = spelling or token.decode("utf-8", errors="replace")
            raise VocabularyMismatch(
                f"{draft.name} cannot draft for {target.source}: token {id}, {shown!r}, is another one "
                "there, or none.",
                "Choose a smaller model of the same family as --draft-model, or leave it out.",
            )


def _same_file(target: PreparedModel, draft: PreparedModel) -> bool:
    return target.tokenizer.read_bytes() == draft.tokenizer.read_bytes()


def load_draft_model(
    files: DraftFiles,
    target: Decoder,
    hardware: Hardware,
    context: int,
    prefill_chunk: int,
    on_fraction: Callable[[float], None],
    library: Callable[[], Library] | None,
    control_tokens: Sequence[int],
) -> DraftModel:
    """Map and pack the draft model.

    Args:
        context: tokens of one slot of the target.
        on_fraction, library: as for `load_decoder`.
        control_tokens: of the vocabulary.

    Raises:
        CorruptFile, NotEnoughMemory
    """
    context = min(context, files.longest)
    decoder = load_decoder(
        files.prepared.weights,
        files.config,
        hardware,
        max_positions=context,
        on_fraction=on_fraction,
        library=library,
        kv=target.kv,
        # The short one has only tokens of both vocabularies.
        short_head=control_tokens if ShortHead.pays(target.config.vocab_size) else None,
    )
    return DraftModel(files.name, decoder, target, context, prefill_chunk)
