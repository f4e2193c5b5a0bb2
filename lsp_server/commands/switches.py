"""Switches that several subcommands share. Their names are those of the settings."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from inference.api import DEFAULT_MODEL, DRAFTS, KERNELS, KV_NUMERICS, NUMERICS
from lsp_server.prompts.order import PROMPT_ORDERS
from lsp_server.settings import Settings, merge

# Attribute of the parsed arguments -> key of the settings.
_KEYS: Mapping[str, str] = {
    "model": "model",
    "numerics": "numerics",
    "mixed": "mixed",
    "draft": "draft",
    "draft_model": "draftModel",
    "device": "device",
    "kernels": "kernels",
    "threads": "threads",
    "context": "context",
    "kv_budget": "kvBudget",
    "kv_numerics": "kvNumerics",
    "kv_offload": "kvOffload",
    "prefill_chunk": "prefillChunk",
    "no_cache": "noCache",
    "prompt_tokens": "promptTokens",
    "prompt_order": "promptOrder",
    "max_new_tokens": "maxNewTokens",
    "temperature": "temperature",
    "seed": "seed",
}


class WrongUsage(Exception):
    """The command line asks for something impossible; exit status 2."""


def add_switches(parser: argparse.ArgumentParser) -> None:
    """Add the shared switches; without one the setting's default holds."""
    group = parser.add_argument_group("model and decoding")
    group.add_argument(
        "--model", metavar="NAME|PATH", help=f"catalog name, .gguf file or directory ({DEFAULT_MODEL})"
    )
    group.add_argument("--numerics", choices=NUMERICS, help="how the weights are stored and multiplied")
    group.add_argument(
        "--mixed",
        metavar="PATTERN=NUMERICS,...",
        help="other numerics for some linear layers, e.g. layers.0.*=bf16,head=fp32; the first match wins",
    )
    group.add_argument("--draft", choices=DRAFTS, help="speculation; never changes the text")
    group.add_argument(
        "--draft-model", metavar="NAME|PATH", help="a smaller model of the same vocabulary that drafts (none)"
    )
    group.add_argument("--device", metavar="cpu|cuda|mps", help="where the model runs")
    group.add_argument(
        "--kernels", choices=KERNELS, help="compiled functions where possible, or torch's only"
    )
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads (by the machine)")
    group.add_argument("--context", type=int, metavar="N", help="tokens of prompt and answer together")
    group.add_argument("--kv-budget", type=int, metavar="MB", help="memory for the caches of prompts")
    group.add_argument("--kv-numerics", choices=KV_NUMERICS, help="how the caches of prompts are stored")
    group.add_argument(
        "--kv-offload", type=int, metavar="MB", help="main memory for caches that leave a CUDA device"
    )
    group.add_argument("--prefill-chunk", type=int, metavar="N", help="prompt tokens for each forward pass")
    group.add_argument("--no-cache", action="store_true", default=None, help="read every prompt anew")
    group.add_argument("--prompt-tokens", type=int, metavar="N", help="most tokens of a prompt")
    group.add_argument(
        "--prompt-order", choices=PROMPT_ORDERS, help="where a prompt shows the text around the cursor"
    )
    group.add_argument("--max-new-tokens", type=int, metavar="N", help="longest answer in tokens")
    group.add_argument("--temperature", type=float, metavar="T", help="0 takes the likeliest token")
    group.add_argument("--seed", type=int, metavar="S", help="for a temperature above 0")


def settings_from(args: argparse.Namespace) -> Settings:
    """The settings that the switches ask for.

    Raises:
        WrongUsage: a value out of its range.
    """
    settings, warnings, _ = merge(Settings(), given(args))
    if warnings:
        switches = {key: "--" + name.replace("_", "-") for name, key in _KEYS.items()}
        raise WrongUsage(_in_switches(warnings[0], switches))
    return settings


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The switches that were used, by the keys of the settings."""
    values = {key: getattr(args, name, None) for name, key in _KEYS.items()}
    return {key: value for key, value in values.items() if value is not None}


def _in_switches(warning: str, switches: Mapping[str, Any]) -> str:
    """The settings' words about a value with the switch's name in place of the key's."""
    text = warning.removeprefix("Draftline: draftline.").partition(";")[0]
    key, _, rest = text.partition(" ")
    return f"{switches.get(key, key)} {rest}"
