"""Settings of the server, from the command line, initializationOptions and workspace/configuration.

Keys are the names of the command-line switches in camelCase, in the section ``draftline``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inference.api import (
    DEFAULT_MODEL,
    DRAFTS,
    KERNELS,
    KV_NUMERICS,
    NUMERICS,
    Draft,
    EngineConfig,
    Kernels,
    KvNumerics,
    Numerics,
    default_numerics,
)
from inference.precision import Precision
from lsp_server.completion.clients import CLIENTS
from lsp_server.completion.options import CompletionOptions
from lsp_server.context.related import SOURCES
from lsp_server.engine_host import Sharing
from lsp_server.prompts.order import PROMPT_ORDERS, PromptOrder

SECTION = "draftline"

# More would only wait for each other.
_THREADS_A_CORE = 4


# Named pipes have not been tried on hardware.
SHARED_BY_DEFAULT = os.name == "posix"


@dataclass(frozen=True)
class Settings:
    """Everything a user can set.

    Attributes:
        model: catalog name, a ``.gguf`` file or a directory.
        numerics: None chooses by the device.
        mixed: other numerics for some layers, in the words of `inference.precision`.
        draft_model: a smaller model that drafts, named as ``model`` is; None for none.
        threads: None chooses by the machine.
        kv_budget: MiB for all KV slots.
        kv_numerics: how they store keys and values.
        kv_offload: MiB of main memory for those that leave a CUDA device.
        prompt_tokens: most tokens of a prompt; reading a file for the first time takes time in proportion.
        prompt_order: in which order a prompt shows the text around the cursor.
        max_lines: lines of a suggestion, 0 for no limit.
        debounce_ms: milliseconds an automatic request waits after the last edit.
        first_line_ms: milliseconds after which an automatic request is answered with the whole lines that
            are there, 0 for never.
        prefetch: ask in advance for what follows the suggestion on screen.
        candidates: suggestions to choose from when the user asks by hand.
        statistics: count on this machine how suggestions are used.
        disabled_languages: LSP language identifiers without suggestions.
        respect_gitignore: files that git ignores are no source of context or guesses.
        disabled_folders: paths or globs, relative to the workspace folder, without suggestions.
        disabled_filters: names of filters and stop rules that are left out.
        context_sources: names of sources of context beyond the window; see `lsp_server.context.related`.
        context_tokens: most tokens of ``prompt_tokens`` that they take together.
        allow_download: consent to fetch missing weights.
        replace_suffix: the client replaces text after the cursor when an item's range says so; None asks
            the client's profile.
        client: whose profile decides what an item holds (completion/clients.py); None finds it from
            ``initialize``.
        shared_engine: one engine process for all editors that want the same; None: where there are Unix
            sockets.
        engine_idle_seconds: how long that process stays when the last editor has left.
    """

    model: str = DEFAULT_MODEL
    numerics: Numerics | None = None
    mixed: str = ""
    draft: Draft = "auto"
    draft_model: str | None = None
    device: str = "cpu"
    kernels: Kernels = "auto"
    threads: int | None = None
    context: int = 4096
    kv_budget: int = 512
    prefill_chunk: int = 128
    no_cache: bool = False
    prompt_tokens: int = 1024
    prompt_order: PromptOrder = "spm"
    max_new_tokens: int = 128
    temperature: float = 0.0
    seed: int = 0
    max_lines: int = 10
    debounce_ms: int = 30
    first_line_ms: int = 150
    prefetch: bool = True
    candidates: int = 3
    statistics: bool = True
    enable: bool = True
    disabled_languages: frozenset[str] = frozenset()
    respect_gitignore: bool = True
    disabled_folders: frozenset[str] = frozenset()
    disabled_filters: frozenset[str] = frozenset()
    context_sources: frozenset[str] = frozenset({"imports"})
    context_tokens: int = 256
    allow_download: bool = False
    replace_suffix: bool | None = None
    client: str | None = None
    kv_numerics: KvNumerics = "fp32"
    kv_offload: int = 512
    shared_engine: bool | None = None
    engine_idle_seconds: int = 60

    def engine_config(self) -> EngineConfig:
        """The part an engine is started with."""
        return EngineConfig(
            model=self.model,
            numerics=self.numerics or default_numerics(self.device),
            mixed=self.mixed,
            draft=self.draft,
            draft_model=self.draft_model,
            device=self.device,
            kernels=self.kernels,
            threads=self.threads,
            context=self.context,
            kv_budget_mb=self.kv_budget,
            prefill_chunk=self.prefill_chunk,
            use_cache=not self.no_cache,
            allow_download=self.allow_download,
            kv=self.kv_numerics,
            kv_offload_mb=self.kv_offload,
        )

    def sharing(self) -> Sharing | None:
        """How the engine is shared with other editors, None for one inside this process."""
        wanted = SHARED_BY_DEFAULT if self.shared_engine is None else self.shared_engine
        return Sharing(float(self.engine_idle_seconds)) if wanted else None

    def completion_options(self, replaces_rest: bool = False) -> CompletionOptions:
        """The part that may differ from request to request.

        Args:
            replaces_rest: the client's habit, which holds unless ``replace_suffix`` is given.
        """
        return CompletionOptions(
            max_new_tokens=self.max_new_tokens,
            prompt_tokens=self.prompt_tokens,
            order=self.prompt_order,
            max_lines=self.max_lines,
            temperature=self.temperature,
            seed=self.seed,
            use_cache=not self.no_cache,
            replaces_rest=replaces_rest if self.replace_suffix is None else self.replace_suffix,
            filters_off=self.disabled_filters,
            context_sources=self.context_sources,
            context_tokens=self.context_tokens,
        )

    def answers(self, language_id: str) -> bool:
        """Whether suggestions are wanted for a language."""
        return self.enable and language_id not in self.disabled_languages


class BadValue(ValueError):
    """A value is not accepted; the message says what is."""


def merge(base: Settings, values: object) -> tuple[Settings, list[str], list[str]]:
    """``base`` with the keys in ``values``.

    ``values`` is what a client sent: an object, perhaps with everything under the key ``draftline``.
    None, also for single keys, keeps the value of ``base``, and so does an invalid value.

    Returns:
        the settings, warnings for the user about invalid values, and unknown keys.
    """
    if isinstance(values, Mapping) and isinstance(values.get(SECTION), Mapping):
        values = values[SECTION]
    if not isinstance(values, Mapping):
        return base, [], []
    changes: dict[str, Any] = {}
    warnings: list[str] = []
    unknown: list[str] = []
    for key, value in values.items():
        if key not in _KEYS:
            unknown.append(str(key))
            continue
        field, read = _KEYS[key]
        if value is None:
            continue
        try:
            changes[field] = read(value)
        except BadValue as error:
            before = getattr(base, field)
            kept = "the default" if before is None else repr(before)
            warnings.append(f"Draftline: {SECTION}.{key} must be {error}; {value!r} is ignored, {kept} kept.")
    return replace(base, **changes), warnings, unknown


def _text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise BadValue("a text that is not empty")


def _mixed(value: object) -> str:
    accepted = "empty, or PATTERN=NUMERICS, separated by commas, of " + ", ".join(NUMERICS)
    if not isinstance(value, str):
        raise BadValue(accepted)
    try:
        return Precision.parse("int8", value).mixed
    except ValueError:
        raise BadValue(accepted) from None


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise BadValue("true or false")


def _device(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"cpu|mps|cuda(:\d+)?", value):
        return value
    raise BadValue("one of cpu, cuda, mps")


def _names(what: str) -> Callable[[object], frozenset[str]]:
    def read(value: object) -> frozenset[str]:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return frozenset(value)
        raise BadValue(f"a list of {what}")

    return read


def _names_of(*choices: str) -> Callable[[object], frozenset[str]]:
    def read(value: object) -> frozenset[str]:
        if isinstance(value, list) and all(item in choices for item in value):
            return frozenset(value)
        raise BadValue(f"a list of names of {', '.join(choices)}")

    return read


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 5:
        return float(value)
    raise BadValue("a number from 0 to 5")


def _one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise BadValue("one of " + ", ".join(choices))

    return read


def _whole(low: int, high: int, here: Callable[[], int] | None = None) -> Callable[[object], int]:
    """``here``: what this machine allows, where that may be less than ``high``."""

    def read(value: object) -> int:
        # JSON has one kind of number: some clients send 75.0 for 75.
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        most = high if here is None else min(high, here())
        if isinstance(whole, int) and not isinstance(whole, bool) and low <= whole <= most:
            return whole
        why = "" if here is None else f" ({_THREADS_A_CORE} for each core of this machine)"
        raise BadValue(f"a whole number from {low} to {most}{why}")

    return read


def _most_threads() -> int:
    return _THREADS_A_CORE * (os.cpu_count() or 1)


_KEYS: dict[str, tuple[str, Callable[[object], object]]] = {
    "model": ("model", _text),
    "numerics": ("numerics", _one_of(*NUMERICS)),
    "mixed": ("mixed", _mixed),
    "draft": ("draft", _one_of(*DRAFTS)),
    "draftModel": ("draft_model", _text),
    "device": ("device", _device),
    "kernels": ("kernels", _one_of(*KERNELS)),
    "threads": ("threads", _whole(1, 1024, _most_threads)),
    "context": ("context", _whole(64, 1_048_576)),
    "kvBudget": ("kv_budget", _whole(1, 1_048_576)),
    "kvNumerics": ("kv_numerics", _one_of(*KV_NUMERICS)),
    "kvOffload": ("kv_offload", _whole(0, 1_048_576)),
    "prefillChunk": ("prefill_chunk", _whole(1, 65_536)),
    "noCache": ("no_cache", _flag),
    "promptTokens": ("prompt_tokens", _whole(16, 1_048_576)),
    "promptOrder": ("prompt_order", _one_of(*PROMPT_ORDERS)),
    "maxNewTokens": ("max_new_tokens", _whole(1, 4096)),
    "temperature": ("temperature", _number),
    "seed": ("seed", _whole(0, 2**63 - 1)),
    "maxLines": ("max_lines", _whole(0, 1000)),
    "debounceMs": ("debounce_ms", _whole(0, 5000)),
    "firstLineMs": ("first_line_ms", _whole(0, 60_000)),
    "prefetch": ("prefetch", _flag),
    "candidates": ("candidates", _whole(1, 5)),
    "statistics": ("statistics", _flag),
    "enable": ("enable", _flag),
    "disabledLanguages": ("disabled_languages", _names("language identifiers")),
    "respectGitignore": ("respect_gitignore", _flag),
    "disabledFolders": ("disabled_folders", _names("paths or globs")),
    "disabledFilters": ("disabled_filters", _names("names of filters")),
    "contextSources": ("context_sources", _names_of(*SOURCES)),
    "contextTokens": ("context_tokens", _whole(0, 1_048_576)),
    "allowDownload": ("allow_download", _flag),
    "replaceSuffix": ("replace_suffix", _flag),
    "client": ("client", _one_of(*CLIENTS)),
    "sharedEngine": ("shared_engine", _flag),
    "engineIdleSeconds": ("engine_idle_seconds", _whole(0, 86_400)),
}
