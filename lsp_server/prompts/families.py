"""Fill-in-the-middle formats of model families.

A family is recognised by the tokenizer's vocabulary, never by the model's name: every control token of
its template must be exactly one token. Sources: the model cards and papers of each family, and the
spellings llama.cpp looks for (``llama-vocab.cpp``).

Some models cannot be told apart by their vocabulary, and need not be: Granite Code and Refact have
StarCoder's vocabulary and its format.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Part(Enum):
    """A place in a template that the document fills."""

    PREFIX = "prefix"
    SUFFIX = "suffix"


Template = tuple["str | Part", ...]


@dataclass(frozen=True)
class FileMarks:
    """How a family was trained to see several files. A marker is a control token, or plain text.

    Each file is ``before``, its path, a newline, its text with a newline at its end, and ``behind``; the
    document itself comes last, its own path followed by the template.

    Attributes:
        repository: control token with the repository's name in front of the first file.
        in_prefix: the files stand at the begin of the prefix and not before the first control token.
    """

    before: str = ""
    behind: str = ""
    repository: str = ""
    in_prefix: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """Control tokens without which the vocabulary does not have these marks."""
        return tuple(mark for mark in (self.before, self.behind) if mark.startswith("<"))


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
        files: how other files are shown; as comments where the family (or its vocabulary) has no marks.
        header: comment lines at the begin of each prefix, with ``{path}`` and ``{language}``.
    """

    name: str
    template: Template
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    begin: str = ""
    stops: tuple[str, ...] = ()
    files: FileMarks | None = None
    header: tuple[str, ...] = ()

    @property
    def controls(self) -> tuple[str, ...]:
        """The control tokens of the template."""
        return tuple(item for item in self.template if isinstance(item, str))

    @property
    def suffix_first(self) -> Template:
        """The template for the order "spm".

        Where the template itself begins with the prefix it is the joint form of arXiv 2207.14255, section 3
        ("SPM variant 2"): an empty prefix, the suffix, and the text before the cursor behind the middle
        marker. To a model that knows prefix-suffix-middle only this is a valid prompt of that format.
        """
        if self.template.index(Part.SUFFIX) < self.template.index(Part.PREFIX):
            return self.template
        without = (item for item in self.template if item is not Part.PREFIX)
        return (*without, Part.PREFIX)


_P, _S = Part.PREFIX, Part.SUFFIX
_BAR: Template = ("<|fim_prefix|>", _P, "<|fim_suffix|>", _S, "<|fim_middle|>")
_ANGLE: Template = ("<fim_prefix>", _P, "<fim_suffix>", _S, "<fim_middle>")
_ANGLE_STOPS = ("<|endoftext|>", "<file_sep>", "<fim_pad>", "<filename>", "<reponame>", "<repo_name>")
_QWEN_NEEDS = ("<|fim_pad|>", "<|file_sep|>", "<|repo_name|>")
_QWEN_STOPS = ("<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|im_start|>", "<|im_end|>")
_QWEN_FILES = FileMarks("<|file_sep|>", repository="<|repo_name|>")
_AIX_HEADER = ("the file path is: {path}", "the code file is written by {language}")

# The order matters where spellings are shared: the more demanding family comes first.
FAMILIES: tuple[Family, ...] = (
    # Its card puts the same tokens into a chat message. Without one it fills in all the same, and that is
    # how llama.cpp's editors ask it; the cursor's line behind the middle marker would not go with a chat.
    Family(
        "qwen3-coder",
        _BAR,
        needs=(*_QWEN_NEEDS, "<tool_response>"),
        stops=(*_QWEN_STOPS, "<tool_call>", "<tool_response>", "<think>"),
        files=_QWEN_FILES,
    ),
    Family("qwen2.5-coder", _BAR, needs=_QWEN_NEEDS, stops=_QWEN_STOPS, files=_QWEN_FILES),
    Family(
        "codegemma",
        _BAR,
        needs=("<|file_separator|>",),
        begin="<bos>",
        stops=("<|file_separator|>", "<end_of_turn>", "<eos>"),
        files=FileMarks(behind="<|file_separator|>"),
    ),
    Family(
        "granite-4",
        _BAR,
        needs=("<|end_of_text|>",),
        stops=("<|end_of_text|>", "<|fim_pad|>", "<|filename|>", "<|reponame|>"),
        files=FileMarks("<|filename|>", repository="<|reponame|>"),
    ),
    Family("fim-bar", _BAR, stops=("<|endoftext|>", "<|fim_pad|>")),
    # StarCoder's vocabulary with roles for a chat, and another end of a text.
    Family(
        "granite-3",
        _ANGLE,
        needs=("<|start_of_role|>",),
        stops=(*_ANGLE_STOPS, "<|end_of_text|>", "<|end_of_role|>", "<|tool_call|>"),
    ),
    # StarCoder's spellings in the vocabulary of GPT-NeoX.
    Family(
        "stable-code", _ANGLE, needs=("<|padding|>",), stops=(*_ANGLE_STOPS, "<|im_end|>", "</fim_middle>")
    ),
    # Spelt like StarCoder, but the suffix comes first; StarCoder's own vocabulary has Jupyter tokens.
    Family(
        "mellum",
        ("<fim_suffix>", _S, "<fim_prefix>", _P, "<fim_middle>"),
        needs=("<filename>",),
        lacks=("<jupyter_start>", "<file_sep>", "<gh_stars>"),
        stops=_ANGLE_STOPS,
        files=FileMarks("<filename>"),
    ),
    Family(
        "starcoder2",
        _ANGLE,
        needs=("<file_sep>",),
        stops=_ANGLE_STOPS,
        files=FileMarks("<file_sep>", repository="<repo_name>"),
    ),
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
    Family(
        "codestral",
        ("[SUFFIX]", _S, "[PREFIX]", _P),
        begin="<s>",
        stops=("</s>", "[MIDDLE]"),
        files=FileMarks("+++++ ", "\n", in_prefix=True),
    ),
    Family(
        "seed-coder",
        ("<[fim-suffix]>", _S, "<[fim-prefix]>", _P, "<[fim-middle]>"),
        begin="<[begin▁of▁sentence]>",
        stops=("<[end▁of▁sentence]>",),
    ),
    Family(
        "aixcoder",
        ("▁<AIX-SPAN-PRE>", _P, "▁<AIX-SPAN-POST>", _S, "▁<AIX-SPAN-MIDDLE>"),
        begin="<s>",
        stops=("</s>",),
        header=_AIX_HEADER,
    ),
    Family(
        "aixcoder",
        ("<AIX-SPAN-PRE>", _P, "<AIX-SPAN-POST>", _S, "<AIX-SPAN-MIDDLE>"),
        begin="<s>",
        stops=("</s>",),
        header=_AIX_HEADER,
    ),
    Family(
        "glm",
        ("<|code_prefix|>", _P, "<|code_suffix|>", _S, "<|code_middle|>"),
        stops=("<|user|>", "<|assistant|>", "<|endoftext|>"),
    ),
    Family("falcon-coder", ("<|prefix|>", _P, "<|suffix|>", _S, "<|middle|>"), stops=("<|endoftext|>",)),
)
