"""Records with made-up figures, from which tests know the answers. Only what a test is about is given."""

from __future__ import annotations

from typing import Any

from bench.journal import RunResults
from bench.records import (
    Answer,
    Call,
    Compared,
    Forward,
    Item,
    Key,
    Layout,
    Memory,
    Part,
    Prefill,
    Record,
    Run,
    Sample,
)


def run(*records: Record, bench: str = "latency", name: str = "a", **changes: Any) -> RunResults:
    header: dict[str, Any] = {
        "bench": bench,
        "command": f"draftline bench {bench}",
        "date": "2026-01-02T03:04:05Z",
        "quick": False,
        "machine": {"cpu": "made up", "cores": 2},
        "options": {"seed": 0},
        "systems": {"draftline": {"version": "0.0"}, "peer": {"build": "b1"}},
    }
    return RunResults(name, Run(**{**header, **changes}), list(records))


def key(system: str = "draftline", item: int = 0, ms: float | None = 10.0, **changes: Any) -> Key:
    """A key that the model answered with a suggestion that is right."""
    values: dict[str, Any] = {
        "system": system,
        "item": item,
        "index": 0,
        "action": "type",
        "along": False,
        "kind": "line",
        "path": f"file{item}.py",
        "language": "python",
        "line": 3,
        "column": 5,
        "position": 100,
        "document_chars": 1000,
        "outcome": "shown",
        "ms": ms,
        "source": "model",
        "reason": "",
        "text": "return",
        "right_chars": 6,
        "right": True,
    }
    return Key(**{**values, **changes})


def item(system: str = "draftline", item: int = 0, **changes: Any) -> Item:
    values: dict[str, Any] = {
        "system": system,
        "item": item,
        "kind": "line",
        "path": f"file{item}.py",
        "language": "python",
        "removed_chars": 40,
        "typed_chars": 30,
        "accepted_chars": 10,
        "accepts": 1,
        "keys": 20,
        "restored": True,
        "seconds": 9.0,
        "cpu_seconds": 4.0,
        "private_bytes": 800_000_000,
        "mapped_bytes": 100_000_000,
    }
    return Item(**{**values, **changes})


def call(
    system: str = "draftline",
    mode: str = "none",
    item: int = 0,
    decode_ms: float = 1000.0,
    **changes: Any,
) -> Call:
    """11 tokens in 10 forwards, which take 1 s after a prompt of 100 tokens in 200 ms."""
    values: dict[str, Any] = {
        "system": system,
        "set": "fim",
        "item": item,
        "mode": mode,
        "repeat": 0,
        "numerics": "int8",
        "prompt_tokens": 100,
        "cached_tokens": 0,
        "tokens": 11,
        "prompt_ms": 200.0,
        "first_ms": 210.0,
        "decode_ms": decode_ms,
        "drafted": 0,
        "accepted": 0,
        "forwards": 10,
        "digest": f"d{item}",
    }
    return Call(**{**values, **changes})


def forward(rows: int, ms: float, **changes: Any) -> Forward:
    values: dict[str, Any] = {
        "system": "draftline",
        "numerics": "int8",
        "context": 256,
        "repeat": 0,
        "linear_ms": ms / 2,
        "weight_bytes": 500_000_000,
    }
    return Forward(rows=rows, ms=ms, **{**values, **changes})


def prefill(tokens: int, ms: float, **changes: Any) -> Prefill:
    values: dict[str, Any] = {
        "system": "draftline",
        "numerics": "int8",
        "repeat": 0,
        "weight_bytes": 500_000_000,
        "linear_ops": 1e9 * tokens,
    }
    return Prefill(tokens=tokens, ms=ms, **{**values, **changes})


def memory(**changes: Any) -> Memory:
    values: dict[str, Any] = {
        "system": "draftline",
        "numerics": "int8",
        "draft": "auto",
        "context": 4096,
        "private_bytes": 820_000_000,
        "mapped_bytes": None,
        "weight_bytes": 494_000_000,
        "kv_bytes": 100_000_000,
    }
    return Memory(**{**values, **changes})


def answer(system: str = "draftline", item: str = "0", **changes: Any) -> Answer:
    values: dict[str, Any] = {
        "system": system,
        "set": "single-line",
        "item": item,
        "variant": "first",
        "numerics": "int8",
        "text": "return 1",
        "exact": True,
        "similarity": 1.0,
        "passed": True,
        "failure": "",
        "valid": True,
        "tokens": 4,
        "ms": 100.0,
        "finish_reason": "stop",
    }
    return Answer(**{**values, **changes})


def compared(draft: str = "auto", **changes: Any) -> Compared:
    values: dict[str, Any] = {
        "path": "file.py",
        "line": 1,
        "column": 1,
        "chunk": 128,
        "typed": True,
        "same_tokens": True,
        "same_logits": True,
        "prompt_tokens": 50,
        "cached_tokens": 40,
        "drafted": 8,
        "accepted": 5,
        "forwards": 6,
    }
    return Compared(draft=draft, **{**values, **changes})


def sample(**changes: Any) -> Sample:
    """After 100 requests, of which 20 were not answered."""
    values: dict[str, Any] = {
        "requests": 100,
        "seconds": 8.0,
        "answered": 80,
        "cancelled": 10,
        "superseded": 10,
        "refused": 0,
        "failed": 0,
        "error": "",
        "ms": 60.0,
        "waiting": 3,
        "documents": 4,
        "private_bytes": 900_000_000,
        "mapped_bytes": 200_000_000,
        "promised_bytes": 1_400_000_000,
        "threads": 12,
        "python_threads": 5,
        "files": 30,
        "objects": 400_000,
    }
    return Sample(**{**values, **changes})


def layout(name: str = "int8", **changes: Any) -> Layout:
    values: dict[str, Any] = {
        "settings": {"numerics": name},
        "nll": 200.0,
        "tokens": 100,
        "passes": [[1, 20.0]],
        "answers": [[1, 2]],
        "file_bytes": 800_000_000,
        "weight_bytes": 494_000_000,
        "kv_token_bytes": 24_576.0,
        "private_bytes": 900_000_000,
        "mapped_bytes": 300_000_000,
    }
    return Layout(name=name, **{**values, **changes})


def part(name: str, ms: float, **changes: Any) -> Part:
    values: dict[str, Any] = {
        "system": "draftline",
        "numerics": "int8",
        "rows": 1,
        "context": 1024,
        "repeat": 0,
        "bytes": None,
        "ops": None,
    }
    return Part(name=name, ms=ms, **{**values, **changes})
