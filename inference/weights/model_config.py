"""The architectures Draftline runs, and config.json in the one spelling the engine reads."""

from __future__ import annotations

from typing import Any

from inference.errors import CorruptFile, UnsupportedArchitecture
from inference.model.config import LLAMA_FAMILY

# Names as in model_type of transformers.
ARCHITECTURES = tuple(sorted(LLAMA_FAMILY))

_REQUIRED = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "rms_norm_eps",
)


def supported_or_raise(model_type: str, where: str) -> str:
    """The model type itself, if the engine runs it.

    Raises:
        UnsupportedArchitecture: naming it and the ones that run.
    """
    if model_type in ARCHITECTURES:
        return model_type
    raise UnsupportedArchitecture(
        f"{where} has the architecture {model_type!r}, which Draftline does not run.",
        f"Choose a model of one of these: {', '.join(ARCHITECTURES)}.",
    )


def normalised(config: dict[str, Any], where: str) -> dict[str, Any]:
    """A transformers config with every field the engine reads present and in one place.

    Adds ``head_dim``, ``num_key_value_heads``, ``rope_theta``, ``rope_scaling`` (None or a dict with
    ``rope_type``; newer files keep both inside ``rope_parameters``), ``tie_word_embeddings`` and
    ``eos_token_ids`` (a list).

    Raises:
        UnsupportedArchitecture: the model cannot be run, with the reason.
        CorruptFile: a required field is missing.
    """
    supported_or_raise(str(config.get("model_type", "unknown")), where)
    missing = [name for name in _REQUIRED if config.get(name) is None]
    if missing:
        raise CorruptFile(f"The configuration of {where} lacks {', '.join(missing)}.", "Fetch it again.")
    if config.get("quantization_config"):
        raise UnsupportedArchitecture(
            f"{where} holds weights that are already quantised in a format only its own library reads.",
            "Choose the unquantised model, or a GGUF file of it.",
        )
    if config.get("hidden_act", "silu") not in ("silu", "swish"):
        raise UnsupportedArchitecture(
            f"{where} uses the activation {config['hidden_act']!r}; Draftline runs 'silu' only.",
            "Choose another model.",
        )
    result = dict(config)
    heads = int(config["num_attention_heads"])
    result["num_key_value_heads"] = config.get("num_key_value_heads") or heads
    result["head_dim"] = config.get("head_dim") or int(config["hidden_size"]) // heads
    result["tie_word_embeddings"] = bool(config.get("tie_word_embeddings", False))
    rope = dict(config.get("rope_parameters") or {})
    rope.update(config.get("rope_scaling") or {})
    result["rope_theta"] = config.get("rope_theta") or rope.pop("rope_theta", None) or 10000.0
    rope.pop("rope_theta", None)
    kind = rope.pop("type", None) or rope.get("rope_type", "default")
    result["rope_scaling"] = None if kind == "default" else {**rope, "rope_type": kind}
    result.pop("rope_parameters", None)
    result["eos_token_ids"] = token_list(config.get("eos_token_ids", config.get("eos_token_id")))
    return result


def token_list(value: Any) -> list[int]:
    """``None``, one id or a list of ids -> a list of ids."""
    if value is None:
        return []
    return [int(token) for token in value] if isinstance(value, list) else [int(value)]
