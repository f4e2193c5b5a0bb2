"""Tiny random models in transformers layout, made on the fly: a fast stand-in for real weights.

Everything is a pure function of the arguments, so two processes that ask for the same model get
the same bytes. Only numpy, safetensors and tokenizers are needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

# The pre-tokenizer pattern of Qwen2.5; with it word boundaries fall as in the real model.
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Spelling and whether the real tokenizer marks it special: the FIM tokens are added, not special.
QWEN_ADDED_TOKENS: tuple[tuple[str, bool], ...] = (
    ("<|endoftext|>", True),
    ("<|im_start|>", True),
    ("<|im_end|>", True),
    ("<|fim_prefix|>", False),
    ("<|fim_middle|>", False),
    ("<|fim_suffix|>", False),
    ("<|fim_pad|>", False),
    ("<|repo_name|>", False),
    ("<|file_sep|>", False),
)

VOCAB_SIZE = 512

ARCHITECTURES = {
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "granite": "GraniteForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}

_CODE = '''\
def fibonacci(n):
    """Return the first n numbers."""
    result = []
    a, b = 0, 1
    for _ in range(n):
        result.append(a)
        a, b = b, a + b
    return result


class Counter:
    def __init__(self, start=0):
        self.value = start

    def increment(self, step=1):
        self.value += step
        return self.value


function sum(values) {
  let total = 0;
  for (const value of values) {
    total += value;
  }
  return total;
}

int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        printf("%s\\n", argv[i]);
    }
    return 0;
}

func Reverse(items []string) []string {
	out := make([]string, 0, len(items))
	for i := len(items) - 1; i >= 0; i-- {
		out = append(out, items[i])
	}
	return out
}

pub fn parse(input: &str) -> Result<Vec<u64>, ParseError> {
    input.split_whitespace().map(|word| word.parse().map_err(ParseError::from)).collect()
}

public static Optional<Integer> largest(List<Integer> numbers) {
    return numbers.stream().filter(n -> n != null).max(Integer::compare);
}

import json
import os.path
from collections import defaultdict


async def load(path, encoding="utf-8"):
    with open(os.path.join(path, "settings.json"), encoding=encoding) as handle:
        data = json.load(handle)
    groups = defaultdict(list)
    for key, item in sorted(data.items()):
        if item is None or not isinstance(item, dict):
            raise ValueError(f"unexpected {key}")
        groups[item["kind"]].append(key)
    return groups


if __name__ == "__main__":
    print(fibonacci(10), Counter().increment())
'''


def make_tokenizer(added_tokens: Sequence[tuple[str, bool]] = QWEN_ADDED_TOKENS) -> Tokenizer:
    """A byte-level BPE tokenizer of exactly VOCAB_SIZE tokens, by default with Qwen2.5-Coder's specials."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(added_tokens),
        min_frequency=1,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator([_CODE], trainer)
    for spelling, special in added_tokens:
        added = AddedToken(spelling, normalized=False, special=special)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([added])
    assert tokenizer.get_vocab_size() == VOCAB_SIZE, tokenizer.get_vocab_size()
    return tokenizer


def make_config(architecture: str = "qwen2", **overrides: Any) -> dict[str, Any]:
    """The config.json of a tiny model: hidden 64, 3 layers, 4 query and 2 key/value heads."""
    tokenizer_ids = {spelling: VOCAB_SIZE - 9 + i for i, (spelling, _) in enumerate(QWEN_ADDED_TOKENS)}
    config: dict[str, Any] = {
        "architectures": [ARCHITECTURES[architecture]],
        "model_type": architecture,
        "vocab_size": VOCAB_SIZE,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "use_cache": True,
        "bos_token_id": tokenizer_ids["<|endoftext|>"],
        "eos_token_id": tokenizer_ids["<|im_end|>"],
    }
    if architecture == "qwen2":
        config["use_sliding_window"] = False
    if architecture == "qwen3":
        config["head_dim"] = 32  # on purpose not hidden_size / heads
    if architecture in ("llama", "granite"):
        config["attention_bias"] = False
        config["mlp_bias"] = False
    if architecture == "smollm3":
        config["no_rope_layers"] = [1, 1, 0]  # 0: this layer has no rotary embedding
        config["pad_token_id"] = tokenizer_ids["<|fim_pad|>"]  # its default lies outside a tiny vocabulary
        config["use_sliding_window"] = False
    if architecture == "mistral":
        config["sliding_window"] = None
    if architecture == "granite":
        config |= {
            "embedding_multiplier": 2.0,
            "attention_multiplier": 0.2,
            "residual_multiplier": 0.7,
            "logits_scaling": 1.5,
        }
    config.update(overrides)
    return config


def make_tensors(config: dict[str, Any], seed: int = 0, gain: float = 2.0) -> dict[str, np.ndarray]:
    """Random float32 weights under their transformers names.

    The branches write strongly into the residual stream. Were they weak, a tied head would find the
    embedding of the last token in it and repeat that token for ever. With an untied head and a small
    ``gain`` the text mostly follows from the last token, so it runs in circles and leaves them now and
    then: drafts are accepted and rejected.
    """
    rng = np.random.default_rng(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or hidden // heads

    def linear(rows: int, columns: int, gain: float = 1.0) -> np.ndarray:
        return rng.normal(0.0, gain / np.sqrt(columns), (rows, columns)).astype(np.float32)

    def norm(size: int) -> np.ndarray:
        return (1.0 + rng.normal(0.0, 0.1, size)).astype(np.float32)

    def bias(size: int) -> np.ndarray:
        return rng.normal(0.0, 0.1, size).astype(np.float32)

    tensors = {"model.embed_tokens.weight": rng.normal(0.0, 0.3, (config["vocab_size"], hidden))}
    for i in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{i}."
        for name, rows in (
            ("q", heads * head_dim),
            ("k", kv_heads * head_dim),
            ("v", kv_heads * head_dim),
        ):
            tensors[f"{prefix}self_attn.{name}_proj.weight"] = linear(rows, hidden, gain)
            if config["model_type"] == "qwen2" or config.get("attention_bias"):
                tensors[f"{prefix}self_attn.{name}_proj.bias"] = bias(rows)
        tensors[f"{prefix}self_attn.o_proj.weight"] = linear(hidden, heads * head_dim, gain)
        if config.get("attention_bias"):
            tensors[f"{prefix}self_attn.o_proj.bias"] = bias(hidden)
        if config["model_type"] == "qwen3":
            tensors[f"{prefix}self_attn.q_norm.weight"] = norm(head_dim)
            tensors[f"{prefix}self_attn.k_norm.weight"] = norm(head_dim)
        tensors[f"{prefix}mlp.gate_proj.weight"] = linear(inner, hidden, gain)
        tensors[f"{prefix}mlp.up_proj.weight"] = linear(inner, hidden, gain)
        tensors[f"{prefix}mlp.down_proj.weight"] = linear(hidden, inner, gain)
        tensors[f"{prefix}input_layernorm.weight"] = norm(hidden)
        tensors[f"{prefix}post_attention_layernorm.weight"] = norm(hidden)
    tensors["model.norm.weight"] = norm(hidden)
    if not config["tie_word_embeddings"]:
        tensors["lm_head.weight"] = linear(config["vocab_size"], hidden, 2.0)
    return {name: np.ascontiguousarray(t, dtype=np.float32) for name, t in tensors.items()}


def make_tiny(
    directory: Path, architecture: str = "qwen2", seed: int = 0, gain: float = 2.0, **overrides: Any
) -> Path:
    """Write a tiny model in transformers layout and return its directory.

    Args:
        directory: created if missing; holds config.json, generation_config.json, model.safetensors,
            tokenizer.json afterwards.
        architecture: a key of ARCHITECTURES.
        seed: of the weights.
        gain: how strongly attention and MLP write into the residual stream.
        **overrides: entries of config.json, e.g. ``num_hidden_layers=2``, ``tie_word_embeddings=False``.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    config = make_config(architecture, **overrides)
    (directory / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    generation = {
        "bos_token_id": config["bos_token_id"],
        "eos_token_id": [config["eos_token_id"], config["bos_token_id"]],
    }
    (directory / "generation_config.json").write_text(json.dumps(generation, indent=2), encoding="utf-8")
    save_file(make_tensors(config, seed, gain), directory / "model.safetensors", metadata={"format": "pt"})
    make_tokenizer().save(str(directory / "tokenizer.json"))
    return directory


def make_drafter(
    directory: Path, model: Path, layers: int = 2, padding: int = 0, context: int | None = None
) -> Path:
    """Write a smaller model that often agrees with a tiny one: the same without its last layers.

    Args:
        model: directory that ``make_tiny`` wrote, with an untied head.
        padding: ids beyond the vocabulary, which this model likes best of all.
        context: another one than the larger model's.
    """
    directory.mkdir(parents=True, exist_ok=True)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["num_hidden_layers"] = layers
    config["vocab_size"] += padding
    config["max_position_embeddings"] = context or config["max_position_embeddings"]
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = {
        name: tensor
        for name, tensor in load_file(model / "model.safetensors").items()
        if not name.startswith("model.layers.") or int(name.split(".")[2]) < layers
    }
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        rows = np.resize(100 * tensors[name], (padding, tensors[name].shape[1]))
        tensors[name] = np.concatenate([tensors[name], rows])
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    (directory / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    return directory
