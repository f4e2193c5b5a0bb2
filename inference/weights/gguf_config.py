"""GGUF metadata and tensor names -> config.json and tensor names of transformers.

Follows llama.cpp's converter in reverse (convert_hf_to_gguf.py, gguf-py/gguf/constants.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.errors import CorruptFile, UnsupportedArchitecture
from inference.weights.gguf import GgufFile
from inference.weights.model_config import normalised, supported_or_raise

# Where llama.cpp rotates neighbouring values, its converter reorders the rows of the query and
# key projections; where it rotates halves as transformers does, they stay. Granite and Mistral go
# through the llama converter; Mistral, SmolLM and Llama all call themselves "llama" in the file.
PERMUTED_ARCHITECTURES = frozenset({"llama", "mistral", "granite"})

_OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

_ROPE_FREQUENCIES = "rope_freqs.weight"

_GRANITE_FACTORS = {
    "embedding_scale": "embedding_multiplier",
    "attention.scale": "attention_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}


def transformers_names(gguf: GgufFile) -> dict[str, str]:
    """Name in transformers -> name in the file, for every weight."""
    names = {}
    for name in gguf.tensors:
        if name == _ROPE_FREQUENCIES:
            continue  # becomes rope_scaling of the config
        names[_OUTER_NAMES.get(name) or _layer_name(name)] = name
    return names


def _layer_name(name: str) -> str:
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _LAYER_NAMES:
        return f"model.layers.{parts[1]}.{_LAYER_NAMES[parts[2]]}.{parts[3]}"
    return name  # unknown; the layout names it in its error


def undo_permutation(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of a query or key projection (or its bias), from neighbouring pairs back to halves.

    Args:
        values: [heads * head_dim, ...]
        heads: query heads for q, key/value heads for k.
    """
    pairs = values.reshape(heads, values.shape[0] // heads // 2, 2, *values.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)


def read_config(gguf: GgufFile) -> dict[str, Any]:
    """The normalised transformers config of a GGUF file.

    Raises:
        UnsupportedArchitecture: naming the architecture, or the feature of it that is missing here.
        CorruptFile: a key is missing.
    """
    metadata = gguf.metadata
    where = str(gguf.path)
    architecture = supported_or_raise(str(metadata.get("general.architecture", "unknown")), where)

    def optional(key: str) -> Any:
        return metadata.get(f"{architecture}.{key}")

    def required(key: str) -> Any:
        value = optional(key)
        if value is None:
            raise CorruptFile(f"{where} lacks the key {architecture}.{key}.", "Use another conversion of it.")
        if isinstance(value, np.ndarray):
            raise UnsupportedArchitecture(
                f"{where} has layers of different shapes ({architecture}.{key} is a list).",
                "Choose another model.",
            )
        return value

    if int(metadata.get("split.count", 1)) > 1:
        raise UnsupportedArchitecture(
            f"{where} is one part of a model split over several files.",
            "Join them with `llama-gguf-split --merge` and use the result.",
        )
    if optional("expert_count"):
        raise UnsupportedArchitecture(
            f"{where} is a mixture of experts, which Draftline does not run.", "Choose a dense model."
        )
    hidden, heads = int(required("embedding_length")), int(required("attention.head_count"))
    head_dim = int(optional("attention.key_length") or hidden // heads)
    rotated = int(optional("rope.dimension_count") or head_dim)
    if rotated != head_dim:
        raise UnsupportedArchitecture(
            f"{where} rotates only {rotated} of {head_dim} values per head, which Draftline does not run.",
            "Choose another model.",
        )
    if "token_embd.weight" not in gguf.tensors:
        raise CorruptFile(f"{where} lacks the tensor token_embd.weight.", "Use another conversion of it.")
    config: dict[str, Any] = {
        "model_type": architecture,
        "vocab_size": gguf.tensors["token_embd.weight"].shape[0],
        "hidden_size": hidden,
        "intermediate_size": int(required("feed_forward_length")),
        "num_hidden_layers": int(required("block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(optional("attention.head_count_kv") or heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": float(required("attention.layer_norm_rms_epsilon")),
        "max_position_embeddings": int(required("context_length")),
        "rope_theta": float(optional("rope.freq_base") or 10000.0),
        "tie_word_embeddings": "output.weight" not in gguf.tensors,
        "bos_token_id": _token(metadata, "bos"),
        "eos_token_id": _token(metadata, "eos"),
        "eos_token_ids": [
            token
            for token in dict.fromkeys(_token(metadata, kind) for kind in ("eos", "eot", "eom"))
            if token is not None
        ],
    }
    if architecture == "granite":
        for key, name in _GRANITE_FACTORS.items():
            # A missing factor was 0 or absent in the original config: neutral in llama.cpp.
            neutral = head_dim**-0.5 if key == "attention.scale" else 1.0
            config[name] = float(optional(key) or neutral)
    config["rope_scaling"] = _rope_scaling(gguf, architecture, config)
    return normalised(config, where)


def _token(metadata: dict[str, Any], kind: str) -> int | None:
    value = metadata.get(f"tokenizer.ggml.{kind}_token_id")
    return None if value is None else int(value)


def _rope_scaling(gguf: GgufFile, architecture: str, config: dict[str, Any]) -> dict[str, Any] | None:
    if _ROPE_FREQUENCIES in gguf.tensors:
        return _llama3_scaling(gguf.read(_ROPE_FREQUENCIES), config, str(gguf.path))
    prefix = f"{architecture}.rope.scaling."
    kind = gguf.metadata.get(prefix + "type", "none")
    factor = gguf.metadata.get(prefix + "factor") or gguf.metadata.get(f"{architecture}.rope.scale_linear")
    if kind == "none" or not factor or float(factor) == 1.0:
        return None
    if kind == "linear":
        return {"rope_type": "linear", "factor": float(factor)}
    if kind == "yarn":
        original = gguf.metadata.get(prefix + "original_context_length")
        return {
            "rope_type": "yarn",
            "factor": float(factor),
            "original_max_position_embeddings": int(original or config["max_position_embeddings"]),
        }
    raise UnsupportedArchitecture(
        f"{gguf.path} scales its positions by {kind!r}, which Draftline does not run.",
        "Choose another model.",
    )


def llama3_factors(
    head_dim: int, theta: float, factor: float, low: float, high: float, original: int
) -> NDArray[np.float32]:
    """By what Llama 3 divides each of its head_dim / 2 rotation frequencies.

    Long waves are slowed by ``factor``, short ones kept, with a smooth passage between (Llama 3.1,
    as in transformers' ``_compute_llama3_parameters``).
    """
    frequencies = theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    turns = original * frequencies / (2 * math.pi)  # full turns within the original context
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1 - smooth) / factor + smooth)).astype(np.float32)


def _llama3_scaling(factors: NDArray[np.float32], config: dict[str, Any], where: str) -> dict[str, Any]:
    # The file holds only the resulting factors. Every published Llama 3 uses the same three other
    # parameters, so they are assumed, and checked by computing the factors from them.
    factor = float(factors.max())
    low, high, original = 1.0, 4.0, 8192
    expected = llama3_factors(config["head_dim"], config["rope_theta"], factor, low, high, original)
    if expected.shape != factors.shape or not np.allclose(expected, factors, rtol=1e-3):
        raise UnsupportedArchitecture(
            f"{where} scales its positions in a way that is not the one of Llama 3.",
            "Use the model in transformers layout instead.",
        )
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": low,
        "high_freq_factor": high,
        "original_max_position_embeddings": original,
    }
