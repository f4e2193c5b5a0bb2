"""Tiny random GGUF files: the same models as tiny_models writes, in llama.cpp's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tests.tiny_models import QWEN_ADDED_TOKENS, make_config, make_tensors, make_tokenizer

_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}

_OUTER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def permute(weights: np.ndarray, heads: int) -> np.ndarray:
    """What llama.cpp's converter does to query and key rows of llama models."""
    shape = (heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return weights.reshape(shape).swapaxes(1, 2).reshape(weights.shape)


def gguf_name(name: str) -> str:
    """``model.layers.0.mlp.up_proj.weight`` -> ``blk.0.ffn_up.weight``."""
    if name in _OUTER:
        return _OUTER[name]
    _, _, index, rest = name.split(".", 3)
    stem, kind = rest.rsplit(".", 1)
    return f"blk.{index}.{_NAMES[stem]}.{kind}"


def add_vocabulary(writer: gguf.GGUFWriter, pre: str = "qwen2") -> None:
    """The tiny tokenizer as metadata."""
    state = json.loads(make_tokenizer().to_str())
    vocabulary = {t["content"]: t["id"] for t in state["added_tokens"]} | state["model"]["vocab"]
    added = {spelling for spelling, _ in QWEN_ADDED_TOKENS}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in added else gguf.TokenType.NORMAL for token in tokens]
    )
    writer.add_token_merges([" ".join(pair) for pair in state["model"]["merges"]])
    writer.add_eos_token_id(vocabulary["<|im_end|>"])
    writer.add_bos_token_id(vocabulary["<|endoftext|>"])


def make_tiny_gguf(
    path: Path,
    architecture: str = "qwen2",
    seed: int = 0,
    kind: str = "F32",
    extra: dict[str, float] | None = None,
    extra_tensors: dict[str, np.ndarray] | None = None,
    **overrides: Any,
) -> Path:
    """Write a tiny GGUF file with the weights of ``make_tiny`` for the same arguments.

    Args:
        kind: type of the linear weights, one gguf can quantise to (``F16``, ``Q8_0``, ...).
        extra: further float metadata, the architecture's name left out of the key.
        extra_tensors: further tensors by their GGUF names.
    """
    config = make_config(architecture, **overrides)
    writer = gguf.GGUFWriter(path, architecture)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    if config.get("head_dim"):
        writer.add_key_length(config["head_dim"])
    if architecture == "granite":
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])
    for key, value in (extra or {}).items():
        writer.add_float32(f"{architecture}.{key}", value)
    add_vocabulary(writer)
    quantised = gguf.GGMLQuantizationType[kind]
    for name, values in make_tensors(config, seed).items():
        if architecture in ("llama", "granite", "mistral"):
            if ".q_proj." in name:
                values = permute(values, heads)
            if ".k_proj." in name:
                values = permute(values, kv_heads)
        if values.ndim == 2 and kind != "F32":
            data = gguf.quants.quantize(np.ascontiguousarray(values), quantised)
            writer.add_tensor(gguf_name(name), data, raw_dtype=quantised)
        else:
            writer.add_tensor(gguf_name(name), np.ascontiguousarray(values))
    for name, values in (extra_tensors or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
