"""Cases for exactness tests, and a way to run them in a process of their own.

Run as a program it reads a job from stdin and writes results to stdout, both JSON:
``python tests/exactness.py < job > results``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Case:
    """One completion: the texts around a cursor. Results of warming cases are not compared."""

    document: str
    prefix: str
    suffix: str
    max_new_tokens: int = 24
    warming: bool = False


def standard_library(names: tuple[str, ...]) -> dict[str, str]:
    """Real source files that every Python brings along."""
    folder = Path(os.__file__).parent
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def cursors(text: str, count: int, window: int, suffix: int = 400) -> list[tuple[str, str]]:
    """``count`` places spread over a file, in the middle of lines and of words too."""
    places = []
    for i in range(count):
        at = int(len(text) * (i + 1) / (count + 1)) + 7 * i
        places.append((text[max(0, at - window) : at], text[at : at + suffix]))
    return places


def typing(case: Case) -> list[Case]:
    """The keys before a case: the same place while its last characters were being typed."""
    return [
        Case(case.document, case.prefix[:-back], case.suffix, max_new_tokens=4, warming=True)
        for back in (9, 1)
    ]


def run(
    cases: list[Case], *, model: str, environment: dict[str, str] | None = None, **engine: Any
) -> list[dict[str, Any]]:
    """Results of the cases that are not warming, from a fresh process.

    Args:
        engine: fields of EngineConfig, and ``sampling``: temperature.
    """
    job = {"cases": [asdict(case) for case in cases], "model": model, **engine}
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def main() -> None:
    """Answer one job."""
    sys.path.insert(0, str(REPOSITORY))
    from inference.api import EngineConfig, GenerationRequest, StopRules
    from inference.engine import Engine

    job = json.load(sys.stdin)
    cases = job.pop("cases")
    temperature = job.pop("temperature", 0.0)
    engine = Engine(EngineConfig(**job))
    engine.start()
    engine.wait_ready(300)
    tokenizer = engine.tokenizer
    special = tokenizer.special
    results = []
    for case in cases:
        prompt = (
            special("<|fim_prefix|>"),
            *tokenizer.encode(case["prefix"]),
            special("<|fim_suffix|>"),
            *tokenizer.encode(case["suffix"]),
            special("<|fim_middle|>"),
        )
        request = GenerationRequest(
            prompt,
            document=case["document"],
            max_new_tokens=case["max_new_tokens"],
            stops=StopRules(token_ids=tokenizer.special_ids | tokenizer.end_ids),
            temperature=temperature,
            seed=5,
            digest_logits=True,
        )
        result = engine.submit(request).future.result()
        if not case["warming"]:
            fields = asdict(result)
            fields.pop("timings")
            results.append({**fields, "finish_reason": result.finish_reason.value})
    hardware = engine.runtime.hardware
    kernel = hardware.int8_kernel.value if hardware.int8_kernel else None
    for fields in results:
        fields["kernel"] = kernel
    engine.close()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
