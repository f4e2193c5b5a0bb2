"""GGUF metadata -> tokenizer.json.

The file names only the kind of pre-tokenizer (``tokenizer.ggml.pre``); the patterns behind the
names are those of the models' own tokenizer.json and of llama.cpp's src/llama-vocab.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from inference.errors import CorruptFile, UnsupportedArchitecture
from inference.weights.gguf import GgufFile

# Values of tokenizer.ggml.token_type.
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"|[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

# Digits one by one, as in Qwen2; or in groups of up to three, as in Llama 3.
_QWEN2 = _CONTRACTIONS + _WORDS + r"|\p{N}" + _REST
_LLAMA3 = _CONTRACTIONS + _WORDS + r"|\p{N}{1,3}" + _REST

_DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+")

_KINDS = {
    "qwen2": "qwen2",
    "deepseek-r1-qwen": "qwen2",
    "llama-bpe": "llama3",
    "llama3": "llama3",
    "llama-v3": "llama3",
    "dbrx": "llama3",
    "smaug-bpe": "llama3",
    "starcoder": "digits",
    "refact": "digits",
    "smollm": "digits",
    "codeshell": "digits",
    "command-r": "digits",
    "deepseek-coder": "deepseek-coder",
    "gpt-2": "gpt2",
    "gpt2": "gpt2",
    "phi-2": "gpt2",
    "mpt": "gpt2",
    "olmo": "gpt2",
    "default": "gpt2",
}

# A word that is in the vocabulary as a whole is taken without looking at the merges.
_IGNORES_MERGES = frozenset({"llama-bpe", "llama3", "llama-v3"})


def tokenizer_json(gguf: GgufFile) -> bytes:
    """Contents of a tokenizer.json that splits text as transformers would with this GGUF file.

    Raises:
        UnsupportedArchitecture: the kind of tokenizer is not known here; naming it.
        CorruptFile: the vocabulary is missing or incomplete.
    """
    metadata = gguf.metadata
    kind = str(metadata.get("tokenizer.ggml.model", "none"))
    tokens = metadata.get("tokenizer.ggml.tokens")
    types = metadata.get("tokenizer.ggml.token_type")
    if not tokens or (types is not None and len(types) != len(tokens)):
        raise CorruptFile(f"{gguf.path} has no complete vocabulary.", "Use another conversion of this model.")
    if kind == "gpt2":
        value = _byte_level(gguf, tokens)
    elif kind == "llama":
        value = _sentencepiece(gguf, tokens)
    else:
        raise UnsupportedArchitecture(
            f"{gguf.path} has a tokenizer of the kind {kind!r}; 'gpt2' and 'llama' can be read.",
            "Use the model in transformers layout (with its tokenizer.json) instead.",
        )
    value["added_tokens"] = [
        {
            "id": index,
            "content": tokens[index],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": token_type == _CONTROL,
        }
        for index, token_type in enumerate(types.tolist() if types is not None else ())
        if token_type in (_CONTROL, _USER_DEFINED)
    ]
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _byte_level(gguf: GgufFile, tokens: Sequence[str]) -> dict[str, Any]:
    pre = str(gguf.metadata.get("tokenizer.ggml.pre", "default"))
    if pre == "default" and gguf.metadata.get("general.architecture") == "qwen2":
        pre = "qwen2"  # files from before the key existed
    if pre not in _KINDS:
        raise UnsupportedArchitecture(
            f"{gguf.path} has the pre-tokenizer {pre!r}, which is not known here.",
            "Use the model in transformers layout (with its tokenizer.json) instead.",
        )
    merges = gguf.metadata.get("tokenizer.ggml.merges")
    if merges is None:
        raise CorruptFile(f"{gguf.path} has a vocabulary without merges.", "Use another conversion of it.")
    # The library writes its own format around an empty model; the big tables are put in as they
    # are, which spares building and serialising them (half a second).
    frame = Tokenizer(models.BPE(ignore_merges=pre in _IGNORES_MERGES))
    frame.pre_tokenizer = _pre_tokenizer(_KINDS[pre])
    frame.decoder = decoders.ByteLevel()
    value: dict[str, Any] = json.loads(frame.to_str())
    value["model"]["vocab"] = {token: index for index, token in enumerate(tokens)}
    value["model"]["merges"] = [merge.split(" ", 1) for merge in merges]
    return value


def _pre_tokenizer(kind: str) -> Any:
    def split(pattern: str) -> Any:
        return pre_tokenizers.Split(Regex(pattern), behavior="isolated")

    def byte_level(use_regex: bool) -> Any:
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)

    digits = pre_tokenizers.Digits(individual_digits=True)
    steps = {
        "qwen2": lambda: [split(_QWEN2), byte_level(False)],
        "llama3": lambda: [split(_LLAMA3), byte_level(False)],
        "digits": lambda: [digits, byte_level(True)],
        "deepseek-coder": lambda: [*map(split, _DEEPSEEK_CODER), digits, byte_level(False)],
        "gpt2": lambda: [byte_level(True)],
    }
    return pre_tokenizers.Sequence(steps[kind]())


def _sentencepiece(gguf: GgufFile, tokens: Sequence[str]) -> dict[str, Any]:
    scores = gguf.metadata.get("tokenizer.ggml.scores")
    if scores is None or len(scores) != len(tokens):
        raise CorruptFile(f"{gguf.path} has a vocabulary without scores.", "Use another conversion of it.")
    unknown = int(gguf.metadata.get("tokenizer.ggml.unknown_token_id", 0))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    frame = Tokenizer(models.BPE(unk_token=None, fuse_unk=True, byte_fallback=True))
    steps: list[Any] = [normalizers.Replace(" ", "▁")]
    if gguf.metadata.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, normalizers.Prepend("▁"))
    frame.normalizer = normalizers.Sequence(steps)
    frame.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    value: dict[str, Any] = json.loads(frame.to_str())
    value["model"]["unk_token"] = tokens[unknown]
    value["model"]["vocab"] = vocabulary
    types = gguf.metadata.get("tokenizer.ggml.token_type")
    # Text must never merge into "</s>", though "</" and "s>" are tokens.
    mergeable = [types is None or types[index] == _NORMAL for index in range(len(tokens))]
    value["model"]["merges"] = _merges_from_scores(vocabulary, scores.tolist(), mergeable)
    return value


def _merges_from_scores(
    vocabulary: dict[str, int], scores: list[float], mergeable: list[bool]
) -> list[list[str]]:
    """SentencePiece merges the pair whose result has the best score; BPE wants the pairs in order."""
    found: list[tuple[float, int, int, list[str]]] = []
    for token, index in vocabulary.items():
        if not mergeable[index]:
            continue
        for cut in range(1, len(token)):
            left, right = vocabulary.get(token[:cut]), vocabulary.get(token[cut:])
            if left is not None and right is not None:
                found.append((-scores[index], left, right, [token[:cut], token[cut:]]))
    found.sort(key=lambda merge: merge[:3])
    return [pair for _, _, _, pair in found]
