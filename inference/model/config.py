"""Shape and constants of a decoder, read from a transformers ``config.json``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from inference.errors import UnsupportedArchitecture

# Values of model_type. Biases, norms of queries and keys, and tied heads are seen from the tensors.
LLAMA_FAMILY = frozenset({"granite", "llama", "mistral", "qwen2", "qwen3", "smollm3"})


@dataclass(frozen=True)
class RopeConfig:
    """Rotary embedding (arXiv 2104.09864). ``scaling`` is transformers' ``rope_scaling`` dict."""

    theta: float
    kind: str
    scaling: dict[str, Any]


@dataclass(frozen=True)
class ModelConfig:
    """Everything the forward pass needs; sizes in elements.

    The four multipliers are Granite's (arXiv 2405.04324 and its transformers configuration);
    they are 1 elsewhere, and ``attention_scale`` is ``head_dim ** -0.5``.
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rms_eps: float
    rope: RopeConfig
    max_position: int
    rope_layers: tuple[bool, ...]
    sliding_window: int | None
    attention_scale: float
    embedding_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    logits_scaling: float = 1.0

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes one token takes in a float32 KV slot."""
        return 2 * self.n_layers * self.n_kv_heads * self.head_dim * 4

    @property
    def linear_weights(self) -> int:
        """Weights that a forward of one row reads, the output head included."""
        mixed = self.n_heads * self.head_dim
        attention = self.hidden_size * (2 * mixed + 2 * self.n_kv_heads * self.head_dim)
        mlp = 3 * self.hidden_size * self.intermediate_size
        return self.n_layers * (attention + mlp) + self.vocab_size * self.hidden_size

    @classmethod
    def from_hf(cls, raw: dict[str, Any]) -> ModelConfig:
        """Read a transformers configuration, as `inference.weights.model_config.normalised` leaves it.

        Raises:
            UnsupportedArchitecture: the model is not of the Llama family, or uses a feature
                (activation, rope variant) that the forward pass does not have.
        """
        kind = str(raw.get("model_type", ""))
        if kind not in LLAMA_FAMILY:
            raise UnsupportedArchitecture(
                f"The architecture {kind or 'unknown'!r} is not one of {', '.join(sorted(LLAMA_FAMILY))}.",
                "Choose a model of these families; `draftline model list` names tested ones.",
            )
        activation = raw.get("hidden_act", "silu")
        if activation not in ("silu", "swish"):
            raise UnsupportedArchitecture(
                f"The activation {activation!r} is not supported.", "Choose a model with SwiGLU layers."
            )
        n_heads = int(raw["num_attention_heads"])
        n_layers = int(raw["num_hidden_layers"])
        hidden = int(raw["hidden_size"])
        head_dim = int(raw.get("head_dim") or hidden // n_heads)
        sliding = raw.get("sliding_window") if raw.get("use_sliding_window", kind == "mistral") else None
        no_rope = raw.get("no_rope_layers")
        return cls(
            model_type=kind,
            vocab_size=int(raw["vocab_size"]),
            hidden_size=hidden,
            intermediate_size=int(raw["intermediate_size"]),
            n_layers=n_layers,
            n_heads=n_heads,
            n_kv_heads=int(raw.get("num_key_value_heads") or n_heads),
            head_dim=head_dim,
            rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
            rope=_rope_config(raw),
            max_position=int(raw.get("max_position_embeddings", 4096)),
            rope_layers=tuple(bool(x) for x in no_rope) if no_rope else (True,) * n_layers,
            sliding_window=int(sliding) if sliding else None,
            attention_scale=float(raw.get("attention_multiplier") or head_dim**-0.5),
            embedding_multiplier=float(raw.get("embedding_multiplier", 1.0)),
            residual_multiplier=float(raw.get("residual_multiplier", 1.0)),
            logits_scaling=float(raw.get("logits_scaling", 1.0)),
        )


def _rope_config(raw: dict[str, Any]) -> RopeConfig:
    params = dict(raw.get("rope_scaling") or {})
    theta = float(raw.get("rope_theta") or 10000.0)
    kind = str(params.get("rope_type") or "default")
    if kind not in ("default", "linear", "llama3", "yarn"):
        raise UnsupportedArchitecture(
            f"The rotary embedding variant {kind!r} is not supported.",
            "Choose a model with default, linear, llama3 or yarn rope.",
        )
    if kind == "yarn" and "original_max_position_embeddings" not in params:
        params["original_max_position_embeddings"] = int(raw.get("max_position_embeddings", 4096))
    for key in ("factor", "low_freq_factor", "high_freq_factor"):
        if key in params and not math.isfinite(float(params[key])):
            raise UnsupportedArchitecture(f"rope parameter {key} is not finite.", "Repair config.json.")
    return RopeConfig(theta=theta, kind=kind, scaling=params)
