"""Negative log-likelihood of a text under one numerics, in a process of its own.

``python tests/perplexity.py MODEL NUMERICS KV WINDOWS < text`` prints JSON: ``nll`` (sum, nats), ``tokens``,
``argmax``, ``kernel``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
WINDOW = 1024  # tokens; every window starts from nothing


def held_out_text() -> str:
    """10 kB of code no model has seen: this project's own."""
    files = sorted((REPOSITORY / "inference").rglob("*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)[:10_000]


def measure(
    model: str,
    numerics: str,
    text: str,
    environment: dict[str, str] | None = None,
    kv: str = "fp32",
    windows: int = 100,
) -> dict[str, Any]:
    """Run in a fresh process, over the first ``windows`` windows of the text at most."""
    done = subprocess.run(
        [sys.executable, __file__, model, numerics, kv, str(windows)],
        input=text,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def main(model: str, numerics: str, kv: str, windows: str) -> None:
    """Answer for the text on stdin."""
    sys.path.insert(0, str(REPOSITORY))
    from bench.numerics.perplexity import likelihood
    from inference.api import EngineConfig
    from inference.runtime import load_runtime

    config = EngineConfig(model=model, numerics=numerics, context=WINDOW, kv=kv)  # type: ignore[arg-type]
    runtime = load_runtime(config, lambda message, fraction: None)
    tokens = runtime.tokenizer.encode(sys.stdin.read())[: int(windows) * WINDOW + 1]
    found = likelihood(runtime.decoder, tokens, WINDOW)
    kernel = runtime.hardware.int8_kernel
    answer = {"nll": found.nll, "tokens": found.tokens, "argmax": found.argmax}
    json.dump({**answer, "kernel": kernel and kernel.value}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
