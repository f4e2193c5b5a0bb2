"""Fill-in-the-middle formats of model families.

A family is recognised by the tokenizer's vocabulary, never by the model's name: every control token of
its template must be exactly one token. Sources: the model cards and papers of each family, and the
spellings llama.cpp looks for (``llama-vocab.cpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Part(Enum):
    """A place in a template that the document fills."""

    PREFIX = "prefix"
    SUFFIX = "suffix"


@dataclass(frozen=True)
class Family:
    """One format.

    Attributes:
        template: spellings of control tokens and parts, in order.
        needs: further tokens the vocabulary must have to be of this family.
        lacks: tokens the vocabulary must not have (families that share their FIM spellings).
        begin: token in front of everything, where the vocabulary has it.
        stops: tokens that end an answer, where the vocabulary has them. All special tokens end one
            anyway; these are those a vocabulary may list as plain tokens.
    """

    name: str
    template: tuple[str | Part, ...]
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    begin: str = ""
    stops: tuple[str, ...] = ()

    @property
    def controls(self) -> tuple[str, ...]:
        """The control tokens of the template."""
        return tuple(item for item in self.template if isinstance(item, str))


_P, _S = Part.PREFIX, Part.SUFFIX
_BAR = ("<|fim_prefix|>", _P, "<|fim_suffix|>", _S, "<|fim_middle|>")
_ANGLE = ("<fim_prefix>", _P, "<fim_suffix>", _S, "<fim_middle>")
_ANGLE_STOPS = ("<|endoftext|>", "<file_sep>", "<fim_pad>", "<filename>", "<reponame>", "<repo_name>")

# The order matters where spellings are shared: the more demanding family comes first.
FAMILIES: tuple[Family, ...] = (
    Family(
        "qwen2.5-coder",
        _BAR,
        needs=("<|fim_pad|>", "<|file_sep|>", "<|repo_name|>"),
        stops=(
            "<|endoftext|>",
            "<|fim_pad|>",
            "<|repo_name|>",
            "<|file_sep|>",
            "<|im_start|>",
            "<|im_end|>",
        ),
    ),
    Family(
        "codegemma",
        _BAR,
        needs=("<|file_separator|>",),
        begin="<bos>",
        stops=("<|file_separator|>", "<end_of_turn>", "<eos>"),
    ),
    Family("granite-4", _BAR, needs=("<|end_of_text|>",), stops=("<|end_of_text|>", "<|fim_pad|>")),
    Family("fim-bar", _BAR, stops=("<|endoftext|>", "<|fim_pad|>")),
    # Spelt like StarCoder, but the suffix comes first; StarCoder's own vocabulary has Jupyter tokens.
    Family(
        "mellum",
        ("<fim_suffix>", _S, "<fim_prefix>", _P, "<fim_middle>"),
        needs=("<filename>",),
        lacks=("<jupyter_start>", "<file_sep>", "<gh_stars>"),
        stops=_ANGLE_STOPS,
    ),
    Family("starcoder2", _ANGLE, needs=("<file_sep>",), stops=_ANGLE_STOPS),
    Family("starcoder", _ANGLE, stops=(*_ANGLE_STOPS, "</fim_middle>", "</code>")),
    Family("santacoder", ("<fim-prefix>", _P, "<fim-suffix>", _S, "<fim-middle>"), stops=("<|endoftext|>",)),
    Family(
        "deepseek-coder",
        ("<｜fim▁begin｜>", _P, "<｜fim▁hole｜>", _S, "<｜fim▁end｜>"),
        begin="<｜begin▁of▁sentence｜>",
        stops=("<｜end▁of▁sentence｜>", "<|EOT|>"),
    ),
    # The blanks of the published template are the word marks of its SentencePiece vocabulary.
    Family("codellama", ("▁<PRE>", _P, "▁<SUF>", _S, "▁<MID>"), begin="<s>", stops=("▁<EOT>", "</s>")),
    Family("codellama", ("<PRE>", _P, "<SUF>", _S, "<MID>"), begin="<s>", stops=("<EOT>", "</s>")),
    Family("codestral", ("[SUFFIX]", _S, "[PREFIX]", _P), begin="<s>", stops=("</s>", "[MIDDLE]")),
    Family(
        "seed-coder",
        ("<[fim-suffix]>", _S, "<[fim-prefix]>", _P, "<[fim-middle]>"),
        begin="<[begin▁of▁sentence]>",
        stops=("<[end▁of▁sentence]>",),
    ),
    Family(
        "glm",
        ("<|code_prefix|>", _P, "<|code_suffix|>", _S, "<|code_middle|>"),
        stops=("<|user|>", "<|assistant|>", "<|endoftext|>"),
    ),
    Family("falcon-coder", ("<|prefix|>", _P, "<|suffix|>", _S, "<|middle|>"), stops=("<|endoftext|>",)),
)
