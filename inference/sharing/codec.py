"""The tokenizer of an engine in another process: read from its file, which the engine names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inference.api import TextCodec


def open_codec(description: dict[str, Any]) -> TextCodec:
    """The tokenizer that `process.describe_codec` describes. Asking over the socket instead would cost a
    request several round trips.

    Raises:
        CorruptFile, UnsupportedArchitecture
    """
    from inference.tokenizer import Tokenizer

    return Tokenizer(Path(description["path"]), description["end_ids"])
