"""Negative log-likelihood of a text under one numerics, in a process of its own.

``python tests/perplexity.py MODEL NUMERICS KV < text`` prints JSON: ``nll`` (sum, nats), ``tokens``,
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
CHUNK = 256


def held_out_text() -> str:
    """20 kB of code no model has seen: this project's own."""
    files = sorted((REPOSITORY / "inference").rglob("*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)[:20_000]


def measure(
    model: str, numerics: str, text: str, environment: dict[str, str] | None = None, kv: str = "fp32"
) -> dict[str, Any]:
    """Run in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, model, numerics, kv],
        input=text,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def main(model: str, numerics: str, kv: str) -> None:
    """Answer for the text on stdin."""
    sys.path.insert(0, str(REPOSITORY))
    import torch

    from inference.api import EngineConfig
    from inference.runtime import load_runtime

    config = EngineConfig(model=model, numerics=numerics, context=WINDOW, kv=kv)  # type: ignore[arg-type]
    runtime = load_runtime(config, lambda message, fraction: None)
    tokens = runtime.tokenizer.encode(sys.stdin.read())
    slot = runtime.decoder.new_slot(WINDOW)
    nll, argmax = 0.0, []
    with torch.inference_mode():
        for start in range(0, len(tokens) - 1, WINDOW):
            slot.truncate(0)
            window = tokens[start : start + WINDOW + 1]
            for at in range(0, min(WINDOW, len(window) - 1), CHUNK):
                block = window[at : at + CHUNK]
                targets = window[at + 1 : at + 1 + CHUNK]
                logits = runtime.decoder.forward(block[: len(targets)], slot)
                assert logits is not None
                chance = torch.log_softmax(logits.double(), -1)
                nll -= chance[torch.arange(len(targets)), torch.tensor(targets)].sum().item()
                argmax += logits.argmax(-1).tolist()
    kernel = runtime.hardware.int8_kernel
    json.dump(
        {"nll": nll, "tokens": len(argmax), "argmax": argmax, "kernel": kernel and kernel.value}, sys.stdout
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
