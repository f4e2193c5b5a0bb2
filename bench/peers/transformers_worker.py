"""The process in which transformers decodes: JSON lines over stdin and stdout.

The first line says what to load; the answer is ``{"facts": ...}``. Each further line is a prompt; the answer
has its tokens, times and counts. ``{"error": ...}`` answers what failed. It ends when stdin does.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.generation.streamers import BaseStreamer

from bench.peers.line_worker import serve
from inference.weights.source import open_source, read

_library: Any = transformers  # parts of it have no types

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class _Watch(BaseStreamer):
    """Sees every forward begin and every group of tokens come; costs microseconds for each."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.groups: list[int] = []
        self.times: list[float] = []
        self._prompt_seen = False

    def forward_begins(self, module: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A forward pre-hook."""
        self.rows.append(int(named["input_ids"].shape[-1]))

    def put(self, value: torch.Tensor) -> None:
        """Called with the prompt, and then with the tokens of each forward."""
        if self._prompt_seen:
            self.times.append(time.perf_counter())
            self.groups.append(value.numel())
        self._prompt_seen = True

    def end(self) -> None:
        """Called after the last token."""


def load(order: dict[str, Any]) -> Any:
    """The model of a directory in transformers layout or of a GGUF file, with plain greedy settings."""
    torch.set_num_threads(order["threads"])
    torch.set_num_interop_threads(1)
    path, dtype = Path(order["path"]), DTYPES[order["dtype"]]
    model = _of_gguf(path, dtype) if path.is_file() else _of_directory(path, dtype)
    # Without what the model's makers suggest for chats, such as a repetition penalty.
    model.generation_config = _library.GenerationConfig()
    return model.eval()


def _of_directory(path: Path, dtype: torch.dtype) -> Any:
    return _library.AutoModelForCausalLM.from_pretrained(path, dtype=dtype, local_files_only=True)


def _of_gguf(path: Path, dtype: torch.dtype) -> Any:
    """The library's model with weights that Draftline dequantises: its own way needs another package."""
    source = open_source(path)
    config = source.config()
    kind = config.pop("model_type")
    model = _library.AutoModelForCausalLM.from_config(
        _library.AutoConfig.for_model(kind, **config), dtype=dtype
    )
    parameters: dict[str, torch.Tensor] = dict(model.named_parameters())
    different = parameters.keys() ^ set(source.names())
    if different:
        raise ValueError(f"{path.name} and the library's {kind} differ in {', '.join(sorted(different))}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(read(source, name)))
    return model


def facts(model: Any) -> dict[str, Any]:
    """What was loaded, and by what."""
    return {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "architecture": type(model).__name__,
        "attention": model.config._attn_implementation,
        "threads": torch.get_num_threads(),
        "weight_bytes": sum(weight.numel() * weight.element_size() for weight in model.parameters()),
    }


def decode(model: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Continue a prompt greedily.

    With prompt lookup the first draft is verified together with the prompt, so the first group may have
    several tokens.
    """
    prompt, stop_ids = order["ids"], order["stop_ids"]
    options: dict[str, Any] = {"eos_token_id": stop_ids, "pad_token_id": stop_ids[0]} if stop_ids else {}
    if order["lookup_tokens"]:
        options["prompt_lookup_num_tokens"] = order["lookup_tokens"]
    watch = _Watch()
    hook = model.register_forward_pre_hook(watch.forward_begins, with_kwargs=True)
    inputs = torch.tensor([prompt])
    began = time.perf_counter()
    try:
        output = model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            do_sample=False,
            max_new_tokens=order["max_tokens"],
            streamer=watch,
            **options,
        )
    finally:
        hook.remove()
    ids = output[0, len(prompt) :].tolist()
    return {
        "ids": ids,
        "first_ms": (watch.times[0] - began) * 1000,
        "decode_ms": (watch.times[-1] - watch.times[0]) * 1000,
        "forwards": len(watch.rows) - 1,
        "drafted": watch.rows[0] - len(prompt) + sum(rows - 1 for rows in watch.rows[1:]),
        "accepted": sum(group - 1 for group in watch.groups),
        "finish_reason": "stop" if ids and ids[-1] in stop_ids else "length",
    }


def main() -> int:
    """Load, and answer until stdin ends."""
    loaded: list[Any] = []

    def answer(order: dict[str, Any]) -> dict[str, Any]:
        if loaded:
            return decode(loaded[0], order)
        loaded.append(load(order))
        return {"facts": facts(loaded[0])}

    serve(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
