"""Text to token ids and back, exact to the byte, without torch or transformers."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers

from inference.errors import CorruptFile, UnsupportedArchitecture

# Tokens that end a text in the families Draftline runs, whether or not a model's config says so:
# instruct models name only the end of a chat turn, but a completion ends with the other one.
_END_SPELLINGS = (
    "<|endoftext|>",
    "<|im_end|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|EOT|>",
    "</s>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
)

# Qwen's own tokenizer.json marks its fill-in-the-middle tokens as not special. What is spelled as
# a tag steers the model all the same; other added tokens (e.g. runs of blanks) are text.
_TAG = re.compile(r"<[^\s<>]+>|\[[A-Z_]+\]")

MAX_HEALED = 40  # characters
_LAST_WORD = re.compile(r"(?: ?\w+| ?[^\s\w]+|\s+)\Z")

_ADDED_TOKENS = re.compile(r'"added_tokens"\s*:\s*(?=\[)')

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: every byte as a visible character. Printable ones stand for themselves, the
    others follow from U+0100 on (openai/gpt-2, encoder.py, bytes_to_unicode)."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + index): byte for index, byte in enumerate(others)
    }


_BYTES = _byte_of_character()


class Tokenizer:
    """The tokenizer of a converted model; implements ``api.TextCodec``.

    Control tokens are known by id only: their spellings inside a text are text, so that a document
    that talks about ``<|fim_prefix|>`` cannot steer the model. Safe to use from several threads.
    """

    def __init__(self, path: Path, end_ids: Iterable[int] = ()) -> None:
        """Load a tokenizer.json.

        Args:
            path: of the tokenizer.json.
            end_ids: what the model's config names as ends of a text (``eos_token_ids``).

        Raises:
            CorruptFile: the file is missing or damaged.
            UnsupportedArchitecture: ids cannot be turned back into bytes.
        """
        try:
            text = path.read_text(encoding="utf-8")
            control, self._core = _load(text)
        except Exception as error:  # the library raises bare Exception for malformed files
            raise CorruptFile(
                f"{path} cannot be read as a tokenizer: {error}.",
                "Delete its directory and fetch the model again.",
            ) from error
        self._control = {str(token["content"]): int(token["id"]) for token in control}
        self._control_ids = frozenset(self._control.values())
        added = self._core.get_added_tokens_decoder()
        self._vocab_size = max(max(added, default=-1) + 1, self._core.get_vocab_size(with_added_tokens=True))
        self._text_added = {
            id: token.content.encode() for id, token in added.items() if id not in self._control_ids
        }
        known_ends = (self._control.get(spelling) for spelling in _END_SPELLINGS)
        self._end_ids = frozenset(end_ids) | {id for id in known_ends if id is not None}
        self._byte_level = _is_byte_level(self._core, path)
        self._bytes: dict[int, bytes] = {}

    @property
    def vocab_size(self) -> int:
        """One more than the highest id; a model's own tables may be longer."""
        return self._vocab_size

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text, nothing put in front; control tokens never come out."""
        ids: list[int] = self._core.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids; control tokens left out, incomplete characters as U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, id: int) -> bytes:
        """The exact bytes a token stands for; b"" for control tokens and ids without a token."""
        known = self._bytes.get(id)
        if known is None:
            known = self._bytes[id] = self._compute_bytes(id)
        return known

    def _compute_bytes(self, id: int) -> bytes:
        if id in self._control_ids:
            return b""
        if id in self._text_added:
            return self._text_added[id]
        token = self._core.id_to_token(id)
        if token is None:
            return b""
        if self._byte_level:
            try:
                return bytes(_BYTES[character] for character in token)
            except KeyError:  # a placeholder such as "[PAD151665]" in a non-byte spelling
                return b""
        if match := _BYTE_TOKEN.fullmatch(token):
            return bytes((int(match[1], 16),))
        return str(token).replace("▁", " ").encode()

    def healing_start(self, line: str) -> int:
        """Where the last piece of ``line`` begins, which might be other tokens if text followed it.

        Merges never cross the borders of a pre-tokenizer that splits, so only its last piece is uncertain;
        others do not split, and the last word stands for the piece. A piece of many characters is left
        alone: it is data, and would have to be generated again.
        """
        splitter = self._core.pre_tokenizer
        if self._byte_level and splitter is not None:
            pieces = splitter.pre_tokenize_str(line)
            start = int(pieces[-1][1][0]) if pieces else len(line)
        else:
            match = _LAST_WORD.search(line)
            start = match.start() if match else len(line)
        return start if len(line) - start <= MAX_HEALED else len(line)

    def special(self, spelling: str) -> int | None:
        """Id of the control token with this spelling, or None."""
        return self._control.get(spelling)

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Ids of all control tokens by their spellings."""
        return self._control

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids of all control tokens."""
        return self._control_ids

    @property
    def end_ids(self) -> frozenset[int]:
        """Ids that end a text: those of the config and those known to end one."""
        return self._end_ids


class StreamDecoder:
    """Decodes token by token; characters split over tokens come out once complete.

    The pieces joined are exactly what ``Tokenizer.decode`` gives for all ids at once.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, id: int) -> str:
        """Text that became complete with this token."""
        return self._decoder.decode(self._tokenizer.token_bytes(id))

    @property
    def pending(self) -> bytes:
        """Bytes of a character still incomplete."""
        return self._decoder.getstate()[0]

    def finish(self) -> str:
        """What is left: U+FFFD for an incomplete character, else nothing."""
        return self._decoder.decode(b"", final=True)


def _load(text: str) -> tuple[list[dict[str, Any]], tokenizers.Tokenizer]:
    """The control tokens, and a tokenizer that reads their spellings as text.

    The library does that for tokens marked special, so all control tokens get the mark. (Leaving
    them out instead would move the ids of other added tokens.) The list is replaced within the JSON
    text: parsing and writing the whole vocabulary again would take longer than loading it.
    """
    match = _ADDED_TOKENS.search(text)
    if match is None:
        return [], tokenizers.Tokenizer.from_str(text)
    added, end = json.JSONDecoder().raw_decode(text, match.end())
    control = []
    for token in added:
        if token["special"] or _TAG.fullmatch(token["content"]):
            token["special"] = True
            control.append(token)
    core = tokenizers.Tokenizer.from_str(text[: match.end()] + json.dumps(added) + text[end:])
    core.encode_special_tokens = True
    normalizer = "" if core.normalizer is None else core.normalizer.__getstate__().decode()
    if normalizer == '{"type":"NFC"}':
        # Composing accents changes the document's bytes, which insertions are cut against. Code is
        # nearly always composed already; llama.cpp and GGUF files do without this step as well.
        core.normalizer = None
    return control, core


def _is_byte_level(core: tokenizers.Tokenizer, path: Path) -> bool:
    state = "" if core.decoder is None else core.decoder.__getstate__().decode()
    if '"ByteLevel"' in state:
        return True
    if '"ByteFallback"' in state:
        return False
    raise UnsupportedArchitecture(
        f"{path} has a tokenizer that is neither byte-level nor with byte fallback.", "Choose another model."
    )
