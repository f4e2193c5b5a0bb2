"""The border between the two halves: plain, frozen data. Imports neither torch nor LSP types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

DEFAULT_MODEL = "qwen2.5-coder-0.5b-instruct"

Numerics = Literal["int8", "nf4", "llm-int8", "bf16", "fp16", "fp32"]
Draft = Literal["none", "ngram", "auto"]
Kernels = Literal["auto", "torch"]
KvNumerics = Literal["fp32", "int8"]

NUMERICS: tuple[Numerics, ...] = ("int8", "nf4", "llm-int8", "bf16", "fp16", "fp32")
DRAFTS: tuple[Draft, ...] = ("none", "ngram", "auto")
KERNELS: tuple[Kernels, ...] = ("auto", "torch")
KV_NUMERICS: tuple[KvNumerics, ...] = ("fp32", "int8")


def default_numerics(device: str) -> Numerics:
    """What a device runs where nobody chose: int8 products are for the CPU only."""
    kind = device.partition(":")[0]
    if kind == "cuda":
        return "nf4"
    return "bf16" if kind == "mps" else "int8"


@dataclass(frozen=True)
class EngineConfig:
    """What one engine runs; the same names are CLI switches and LSP settings.

    Attributes:
        model: catalog name, a ``.gguf`` file or a directory in transformers layout.
        threads: OpenMP threads; None chooses by the cores of the machine.
        kernels: "auto" compiles the integer products and the steps between them where there is a C compiler;
            "torch" uses those of oneDNN and torch. Their bits differ.
        context: tokens of prompt and answer together that one slot holds.
        kv_budget_mb: MiB for all KV slots together, on the device; decides how many documents stay warm.
        prefill_chunk: prompt tokens per forward pass.
        use_cache: reuse KV of earlier requests.
        allow_download: fetch missing weights without asking again.
        queue_limit: requests of one client that may wait; more are refused with ``queue-full``.
        draft_model: a smaller model of the same vocabulary that drafts in "auto", named as ``model`` is; None
            for none. Its weights, and a KV slot of its own for each of the model's, need memory too.
        kv: how keys and values are stored; "int8" takes less than a third of the memory, and rounds.
        kv_offload_mb: MiB of main memory for the slots that give way on a CUDA device; 0 drops them.
        mixed: other numerics for some linear layers, see `inference.precision`.
    """

    model: str = DEFAULT_MODEL
    numerics: Numerics = "int8"
    draft: Draft = "auto"
    device: str = "cpu"
    kernels: Kernels = "auto"
    threads: int | None = None
    context: int = 4096
    kv_budget_mb: int = 512
    prefill_chunk: int = 128
    use_cache: bool = True
    allow_download: bool = False
    queue_limit: int = 32
    draft_model: str | None = None
    kv: KvNumerics = "fp32"
    kv_offload_mb: int = 512
    mixed: str = ""


@dataclass(frozen=True)
class Below:
    """What stands below the cursor, as evidence of where a text ends; see `inference.below`.

    Attributes:
        head: the cursor's line up to the cursor.
        lines: the next lines that are not blank, in order; the rest of the cursor's line must be blank.
        body, unreachable, rejoins: which conclusions are drawn.
    """

    head: str
    lines: tuple[str, ...]
    body: bool = True
    unreachable: bool = True
    rejoins: bool = True


@dataclass(frozen=True)
class StopRules:
    """Declarative ends of a generation, checked after every token.

    Attributes:
        token_ids: ends before any of these is emitted (special tokens).
        strings: ends before the first occurrence of any of these.
        suffix: the document's text after the cursor; ends where the model starts to repeat it.
        single_line: ends before the first newline.
        finish_line: ends before the first newline if there is text before it: the cursor's line is finished,
            and one that needs no more is followed by others.
        max_lines: ends before newline number ``max_lines`` (None: no limit).
        min_indent: ends before a later line that is indented by fewer columns and does not begin with a
            closing bracket: the scope of the cursor is left (None: no such end).
        first_line_scope: without ``min_indent``: the text's own first line sets it, as the cursor stands on
            an empty line whose indentation the model chooses.
        below: ends where the lines below the cursor show that the text has said enough (None: no such end).
        text_marks: what strings of several lines begin and end with; indentation in them says nothing.
        open_text: that of the string that the cursor stands in, "" for none.
        deadline_ms: answer at the latest this long after the decode began; never changes the
            text, only where it is cut (None: no limit).
    """

    token_ids: frozenset[int] = frozenset()
    strings: tuple[str, ...] = ()
    suffix: str = ""
    single_line: bool = False
    max_lines: int | None = None
    min_indent: int | None = None
    first_line_scope: bool = False
    below: Below | None = None
    deadline_ms: float | None = None
    finish_line: bool = False
    text_marks: tuple[str, ...] = ()
    open_text: str = ""


@dataclass(frozen=True)
class GenerationRequest:
    """One prompt to continue.

    Attributes:
        prompt: token ids.
        heal: characters that the answer must begin with; they were taken off the end of the text before the
            cursor (`TextCodec.healing_start`), and are not part of the result's text.
        document: requests of one document supersede each other, and share a KV slot.
        temperature: 0 is greedy; above 0 samples with noise keyed by (seed, position).
        top_k, top_p, min_p: filters of the sampling, see `inference.sampling.Sampling`.
        draft: overrides the engine's drafter.
        draft_limit: most tokens drafted for one forward (None: the decoder's own limit).
        use_cache: False prefills from nothing (the text must be the same; for measurements).
        digest_logits: also hash the logits rows that chose the tokens.
        source_hint: first index and end of the prompt tokens that the answer is expected to copy, as an edit
            copies its document. Helps drafting from the first token on, never changes the text.
        client: who asks, where several share the engine: their requests take turns.
        background: nobody waits for the answer: any other request goes first, and ends this one.
    """

    prompt: tuple[int, ...]
    document: str = ""
    heal: str = ""
    max_new_tokens: int = 128
    stops: StopRules = field(default_factory=StopRules)
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    draft: Draft | None = None
    draft_limit: int | None = None
    use_cache: bool = True
    digest_logits: bool = False
    source_hint: tuple[int, int] | None = None
    client: str = ""
    background: bool = False


class FinishReason(str, Enum):
    """Why a generation ended."""

    STOP_TOKEN = "stop-token"
    STOP_STRING = "stop-string"
    SUFFIX = "suffix"
    SCOPE = "scope"
    LINES = "lines"
    LENGTH = "length"
    CONTEXT = "context"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Chunk:
    """Text that became final, in order; the concatenation of all chunks is the result's text."""

    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Timings:
    """Milliseconds. ``queue``: waiting; ``prompt``: prefill; ``first``: submit to first token;
    ``total``: submit to result."""

    queue: float = 0.0
    prompt: float = 0.0
    first: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class GenerationResult:
    """What a request produced.

    ``token_ids`` are all tokens the model chose, healed ones and a stop token included; ``text`` is cut by
    the stop rules. ``forwards`` counts decode passes without the prefill; ``drafted`` and
    ``accepted`` count tokens. ``logits_sha256`` is "" unless asked for.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    drafted: int
    accepted: int
    forwards: int
    timings: Timings
    logits_sha256: str = ""


class EngineState(str, Enum):
    """Life of an engine."""

    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class EngineStatus:
    """A state with words for the user; ``fraction`` is 0..1 while loading, if known.

    ``code`` and ``next_step`` are set in FAILED (from the DraftlineError).
    """

    state: EngineState
    message: str = ""
    fraction: float | None = None
    code: str = ""
    next_step: str = ""


class TextCodec(Protocol):
    """The tokenizer as seen from the server half (no torch behind it)."""

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text; spellings of special tokens inside it stay plain text."""

    def decode(self, ids: list[int]) -> str:
        """Text of token ids, special tokens left out."""

    def healing_start(self, line: str) -> int:
        """Where the last piece of ``line`` begins, which might be other tokens if text followed it.

        ``len(line)`` if the line should be left as it is.
        """

    def special(self, spelling: str) -> int | None:
        """Id of a special token, or None if the vocabulary has no such single token."""

    @property
    def special_ids(self) -> frozenset[int]:
        """All special (control) token ids."""

    @property
    def end_ids(self) -> frozenset[int]:
        """Ids that end a text according to the model's configuration."""


class Generation(Protocol):
    """A submitted request."""

    @property
    def future(self) -> Future[GenerationResult]:
        """Resolves when the request ended, also when cancelled or superseded."""

    def cancel(self) -> None:
        """Stop at the next decode step; the result has reason CANCELLED. Idempotent, any thread."""

    def chunks(self) -> Iterator[Chunk]:
        """Blocking iterator over the stream; ends when the future is done."""

    def listen(self, callback: Callable[[Chunk], None]) -> None:
        """Call ``callback`` with each chunk, in order and before the future is done, instead of `chunks`.

        Chunks from before come at once, later ones from the engine's thread, which waits meanwhile.
        """


class TextEngine(Protocol):
    """What the server half needs of an engine."""

    @property
    def status(self) -> EngineStatus: ...

    @property
    def tokenizer(self) -> TextCodec:
        """Raises EngineStopped until the engine is READY."""

    @property
    def context(self) -> int:
        """Tokens of prompt and answer together."""

    def start(self) -> None:
        """Begin loading in the worker thread; returns at once."""

    def submit(self, request: GenerationRequest) -> Generation:
        """Queue a request; older ones of the same document end as SUPERSEDED.

        Raises:
            QueueFull, PromptTooLong, InvalidRequest, EngineStopped
        """

    def learn(self, document: str, text: str) -> None:
        """Let guesses draw on a document's text until it is closed; never decides about answers."""

    def close_document(self, document: str) -> None:
        """Forget what is kept of a document; it was closed."""

    def close(self) -> None:
        """Stop the worker; running requests end as CANCELLED."""

    def retire(self) -> None:
        """`close`, where another engine comes in its place and wants the memory, also that of a process
        outside this one."""
