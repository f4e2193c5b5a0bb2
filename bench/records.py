"""The lines of a results file: what each measurement records, and nothing computed from others.

A results file is JSON lines. Each line is one of the dataclasses below with two keys in front: ``record``
(the class's ``RECORD``) and ``run`` (the id of the run it belongs to). The first line of a run is its
``Run``. Reports are made from these lines alone, so a field that a report needs is recorded here.

Units: ``*_ms`` milliseconds, ``*_bytes`` bytes, ``*_seconds`` seconds, columns and lengths in characters,
lines from 1. ``system`` names who answered: "draftline", "llama-server q8_0", "transformers", ...
None means "not known", e.g. because a peer does not tell.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

Source = Literal["model", "cache", "none"]
Action = Literal["type", "newline", "typo", "backspace", "move", "edit-above", "accept"]
# What a draft was based on; see inference.drafting.
DRAFTERS = ("none", "suffix", "pointer", "recycling", "model", "shared")
ItemKind = Literal["body", "block", "line", "rest-of-line"]


@dataclass(frozen=True)
class Run:
    """What was run, on what.

    Attributes:
        bench: the subcommand of ``draftline bench``.
        command: the command line that repeats it.
        date: ISO 8601, UTC, seconds.
        machine: cpu, cores, isa, memory_gb, os, python, torch, ... as strings or numbers.
        options: of the run, seed included.
        systems: for each system its version, build, model file and settings.
    """

    RECORD: ClassVar[str] = "run"
    bench: str
    command: str
    date: str
    quick: bool
    machine: dict[str, Any]
    options: dict[str, Any]
    systems: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Key:
    """One key of a replay and its answer.

    Attributes:
        item: index of the item in the run; the same item for every system.
        index: of the key in the item, counting from 0.
        action: what the typist did before asking.
        along: the key continued a suggestion that was on screen.
        kind, path, language: of the item.
        line, column: the cursor, from 1.
        position: characters before the cursor in the document.
        ms: from sending the change to having the answer, None if it never came (silent, or superseded
            by the next key, which ``outcome`` tells).
        outcome: "shown", "nothing" (an answer without a suggestion), "superseded", "timeout" or "error".
        source: who made the answer; "none" where there was no suggestion without asking the model.
        reason: the server's reason code for no suggestion.
        first_ms: submit to first token in the engine.
        model_ms: submit to result in the engine.
        prompt_tokens, cached_tokens: of the request to the model, and those known from an earlier one.
        new_tokens: prompt tokens that were computed: prompt_tokens - cached_tokens.
        tokens, drafted, accepted, forwards: of the decoding.
        text: what was shown, "" if nothing.
        right_chars: characters at the beginning of ``text`` that are what was to be typed next.
        right: the whole of ``text`` (trailing blanks aside) is what was to be typed next.
    """

    RECORD: ClassVar[str] = "key"
    system: str
    item: int
    index: int
    action: Action
    along: bool
    kind: ItemKind
    path: str
    language: str
    line: int
    column: int
    position: int
    document_chars: int
    outcome: Literal["shown", "nothing", "superseded", "timeout", "error"]
    ms: float | None
    source: Source
    reason: str
    text: str
    right_chars: int
    right: bool
    first_ms: float | None = None
    model_ms: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    new_tokens: int | None = None
    tokens: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    forwards: int | None = None


@dataclass(frozen=True)
class Item:
    """One removed piece, retyped by one system.

    Attributes:
        removed_chars: length of the removed piece.
        typed_chars: of those, typed by hand; the others came from accepted suggestions.
        accepted_chars: characters of accepted suggestions.
        accepts: suggestions accepted, whole or in part.
        keys: all keys, also typos, backspaces, moves and accepts.
        restored: the document ended as it was before the removal.
        cpu_seconds: of the server's processes (user + system) while the item was typed.
        private_bytes, mapped_bytes: memory of the server's processes at the item's end.
    """

    RECORD: ClassVar[str] = "item"
    system: str
    item: int
    kind: ItemKind
    path: str
    language: str
    removed_chars: int
    typed_chars: int
    accepted_chars: int
    accepts: int
    keys: int
    restored: bool
    seconds: float
    cpu_seconds: float | None
    private_bytes: int | None
    mapped_bytes: int | None


@dataclass(frozen=True)
class Call:
    """One prompt decoded by one system in one mode (speculation bench).

    Attributes:
        set: "fim" (HumanEval-Infilling), "real" (real files), "edit" (EditEval) or "fresh" (nothing to copy).
        item: index in the set; the same prompt for every system and mode.
        mode: draftline: "none", "ngram", "auto", or "ngram<=N" in a sweep of the draft length; peers: "plain"
            or the name of their speculation, e.g. "ngram-simple", "prompt-lookup".
        repeat: from 0; modes are interleaved within a repeat.
        tokens: decoded, the first one and the end token included.
        prompt_ms: reading the prompt; decode_ms: from the first token to the last; first_ms: until
            the first token was there.
        steps: [match, drafted, accepted, rows, ms, drafter] for each decode forward, draftline only; the
            drafter as an index of DRAFTERS, missing in results of versions that had only one.
        digest: SHA-256 of the token ids, "" if unknown; equal for all modes of a lossless system.
        sweep: part of the sweep of the draft length.
    """

    RECORD: ClassVar[str] = "call"
    system: str
    set: str
    item: int
    mode: str
    repeat: int
    numerics: str
    prompt_tokens: int
    cached_tokens: int
    tokens: int
    prompt_ms: float
    first_ms: float
    decode_ms: float
    drafted: int | None
    accepted: int | None
    forwards: int | None
    digest: str
    steps: list[list[float]] = field(default_factory=list)
    sweep: bool = False


@dataclass(frozen=True)
class Bandwidth:
    """Read bandwidth of this machine, measured in the run: the floor of every forward.

    Attributes:
        bytes_per_second: best of several passes of all threads over a buffer too large for the caches.
        int8_ops_per_second, float_ops_per_second: best of several large products, multiply and add counted as
            two, None if not measured; the floor of long prefills.
    """

    RECORD: ClassVar[str] = "bandwidth"
    bytes_per_second: float
    threads: int
    int8_ops_per_second: float | None = None
    float_ops_per_second: float | None = None


@dataclass(frozen=True)
class Forward:
    """One forward pass of ``rows`` new tokens behind ``context`` cached ones.

    Attributes:
        linear_ms: the linear layers alone, None if not measured.
        weight_bytes: read by the linear layers in one pass.
        repeat: interleaved over rows.
    """

    RECORD: ClassVar[str] = "forward"
    system: str
    numerics: str
    rows: int
    context: int
    repeat: int
    ms: float
    linear_ms: float | None
    weight_bytes: int


@dataclass(frozen=True)
class Prefill:
    """A prompt of ``tokens`` read from nothing."""

    RECORD: ClassVar[str] = "prefill"
    system: str
    numerics: str
    tokens: int
    repeat: int
    ms: float
    weight_bytes: int | None
    linear_ops: float | None


@dataclass(frozen=True)
class Part:
    """A part of a forward pass, run alone in all layers (speculation bench).

    Attributes:
        name: "whole" for the pass itself; "qkv", "out", "gate_up", "down" and "head" for linear layers; else
            see bench.speculation.between.
        rows, context: of the pass.
        bytes: read at least; ops: multiply and add counted as two; None where that is no bound.
    """

    RECORD: ClassVar[str] = "part"
    system: str
    numerics: str
    name: str
    rows: int
    context: int
    repeat: int
    ms: float
    bytes: int | None
    ops: float | None


@dataclass(frozen=True)
class Memory:
    """Memory of a loaded model.

    Attributes:
        context: tokens in the cache when it was measured.
        private_bytes: of the whole process; weight_bytes: packed weights; kv_bytes: of one slot.
        mapped_bytes: files mapped and resident.
    """

    RECORD: ClassVar[str] = "memory"
    system: str
    numerics: str
    draft: str
    context: int
    private_bytes: int | None
    mapped_bytes: int | None
    weight_bytes: int | None
    kv_bytes: int | None


@dataclass(frozen=True)
class Answer:
    """One item of a quality set, answered and judged.

    Attributes:
        set: "single-line", "random-span" (HumanEval-Infilling), "edit" (EditEval) or "repo" (real files).
        item: the task's own id.
        variant: what is compared: numerics, prompt order, filters, or a peer's trimming, as words.
        text: the answer as it would be inserted.
        exact: equals the canonical answer, blanks at both ends aside.
        similarity: 0 .. 1, 1 - Levenshtein distance / longer length; of "repo" over the first lines.
        passed: the item's tests passed in a subprocess; None if they were not run.
        failure: "", "timeout", "memory", "syntax" or the exception's name.
        valid: prefix + text + suffix (or the edited text) parses without a syntax error.
        first_line: the first line equals that of the canonical answer; of "repo" only.
        prompt_tokens: of the request, where the system tells.
        forwards: decode passes, of "edit" only, as are ``decode_ms``, from the first token to the end, and
            ``first_hunk_ms``, from the request until the first changed lines were certain.
        shown_behind: forwards from the one that ended the first line that differs to the one that showed a
            change, 0 if that is the same; None if nothing was shown before the end.
    """

    RECORD: ClassVar[str] = "answer"
    system: str
    set: str
    item: str
    variant: str
    numerics: str
    text: str
    exact: bool
    similarity: float
    passed: bool | None
    failure: str
    valid: bool
    tokens: int | None
    ms: float
    finish_reason: str
    first_line: bool | None = None
    prompt_tokens: int | None = None
    forwards: int | None = None
    decode_ms: float | None = None
    first_hunk_ms: float | None = None
    shown_behind: int | None = None


@dataclass(frozen=True)
class Compared:
    """One prompt in one variant against the baseline; results of versions before ``Checked``."""

    RECORD: ClassVar[str] = "compared"
    path: str
    line: int
    column: int
    draft: str
    chunk: int
    typed: bool
    same_tokens: bool
    same_logits: bool
    prompt_tokens: int
    cached_tokens: int
    drafted: int
    accepted: int
    forwards: int


class CheckedWay(NamedTuple):
    """One way to an answer, compared with the plain one.

    Attributes:
        limit: most tokens drafted for one forward, 0 without drafts.
        cache, chunk, threads: see bench.exactness.variants; threads None: they were left alone.
        widest: rows of the widest decode forward.
    """

    draft: str
    limit: int
    cache: str
    chunk: int
    threads: int | None
    cached_tokens: int
    drafted: int
    accepted: int
    forwards: int
    widest: int
    same_tokens: bool
    same_logits: bool

    @property
    def same(self) -> bool:
        """Nothing differs."""
        return self.same_tokens and self.same_logits


@dataclass(frozen=True)
class Checked:
    """One prompt answered plainly from nothing cached, and in several other ways (exactness bench).

    Attributes:
        set: the kind of the prompt, see bench.exactness.prompts.
        source: a place in a file or the id of a task, "" where the prompt is made up.
        tokens: of the plain answer.
        temperature: 0 is greedy.
        digest: the first 16 hex digits of the SHA-256 of the plain answer's logits.
        ways: each as the fields of ``CheckedWay`` in their order, to keep the file small.
    """

    RECORD: ClassVar[str] = "checked"
    set: str
    source: str
    prompt_tokens: int
    tokens: int
    temperature: float
    digest: str
    ways: list[list[Any]]

    def answers(self) -> list[CheckedWay]:
        """The ways by the names of their fields."""
        return [CheckedWay(*way) for way in self.ways]


@dataclass(frozen=True)
class Restarted:
    """Answers after a change within a process, against those of one which never had anything else.

    Attributes:
        change: in words.
        answers: compared; identical: of these those with the same tokens and logits.
    """

    RECORD: ClassVar[str] = "restarted"
    change: str
    answers: int
    identical: int


@dataclass(frozen=True)
class Sample:
    """The process of a running engine between two requests (soak bench). Counts are of the whole run.

    Attributes:
        answered, cancelled, superseded, refused, failed: what became of the requests; refused: the queue was
            full.
        error: the first failure, "" if there was none.
        ms: median of the answers since the sample before, submit to result; None if there were none.
        waiting: most requests without an answer at once since the sample before.
        documents: open in the editor.
        promised_bytes: private memory that the process may take.
        threads: of the process; python_threads: of these the interpreter's.
        files: open descriptors. objects: that the garbage collector knows.
    """

    RECORD: ClassVar[str] = "sample"
    requests: int
    seconds: float
    answered: int
    cancelled: int
    superseded: int
    refused: int
    failed: int
    error: str
    ms: float | None
    waiting: int
    documents: int
    private_bytes: int | None
    mapped_bytes: int | None
    promised_bytes: int
    threads: int
    python_threads: int
    files: int
    objects: int


@dataclass(frozen=True)
class Layout:
    """One way to store and multiply the weights, in a process of its own (numerics bench).

    The answers to gaps are ``Answer`` records whose ``numerics`` is this one's ``name``.

    Attributes:
        settings: the fields of EngineConfig that make it.
        error: what failed, "" if nothing did; what was measured before is there.
        kernel: of int8 products, None if there are none.
        nll: sum over ``tokens`` predicted tokens of a text, in nats.
        passes: [rows, ms] for each number of rows of a forward pass, the median over the repeats.
        answers: token ids of the greedy answers, the same prompts in every row of the run.
        file_bytes: the weights on disk; weight_bytes: packed copies of them in memory.
        kv_token_bytes: keys and values of one token.
        private_bytes, mapped_bytes: of the process after its answers.
    """

    RECORD: ClassVar[str] = "layout"
    name: str
    settings: dict[str, Any]
    error: str = ""
    kernel: str | None = None
    bit_exact: bool | None = None
    nll: float | None = None
    tokens: int | None = None
    passes: list[list[float]] = field(default_factory=list)
    answers: list[list[int]] = field(default_factory=list)
    file_bytes: int | None = None
    weight_bytes: int | None = None
    kv_token_bytes: float | None = None
    private_bytes: int | None = None
    mapped_bytes: int | None = None


Record: TypeAlias = (
    Run
    | Key
    | Item
    | Call
    | Bandwidth
    | Forward
    | Prefill
    | Part
    | Memory
    | Answer
    | Layout
    | Compared
    | Checked
    | Restarted
    | Sample
)
RECORDS: dict[str, type[Record]] = {
    cls.RECORD: cls
    for cls in (
        Run,
        Key,
        Item,
        Call,
        Bandwidth,
        Forward,
        Prefill,
        Part,
        Memory,
        Answer,
        Layout,
        Compared,
        Checked,
        Restarted,
        Sample,
    )
}


def to_json(record: Record, run: str) -> dict[str, Any]:
    """A record as the object of its line."""
    return {"record": record.RECORD, "run": run, **asdict(record)}
