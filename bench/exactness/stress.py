"""Made-up texts of the kinds that break decoders: long repeats, odd characters, blanks, no sense at all."""

from __future__ import annotations

import random
from collections.abc import Callable

_WORDS = (
    "value",
    "index",
    "self.items[i]",
    "return",
    "x +",
    "(a, b)",
    '"name"',
    "0x1F",
    "count -= 1",
    "else:",
)
_ALPHABETS = (
    "äöüßéèñçøåłžąőİıŁ",
    "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "的一是不了人我在有他这为之大来以个中上们",
    "あいうえおかきくけこアイウエオ한국어문자열",
    "مرحباשלוםनमस्ते",
    "🙂🚀👩‍💻🏳️‍🌈🇩🇪∑∫√≠≤→⇒✓",
    "e\u0301a\u0308\u200b\u200d\u2028\ufeff\u00a0",
)
_BLANKS = ("    ", "\t", "  ", "\n", "\n\n", "\r\n", "\t\t", " " * 17, "\n    ", " \n", "x", "}")


def repeats(generator: random.Random, size: int) -> str:
    """One piece again and again, now and then with a change: drafts are long, and wrong at the changes."""
    piece = _phrase(generator, generator.randint(1, 12)) + generator.choice(["\n", "\n\n", ", ", "    \n"])
    often = generator.choice([0.0, 0.02, 0.2])
    parts: list[str] = []
    length = 0
    while length < size:
        part = piece if generator.random() >= often else _phrase(generator, 3) + "\n"
        parts.append(part)
        length += len(part)
    return "".join(parts)


def unicode(generator: random.Random, size: int) -> str:
    """Words of many scripts, signs of several code points, and characters that nobody sees."""
    parts = []
    length = 0
    while length < size:
        alphabet = generator.choice(_ALPHABETS)
        word = "".join(generator.choices(alphabet, k=generator.randint(1, 9)))
        part = f"{generator.choice(_WORDS)} = {word!r}\n" if generator.random() < 0.3 else word + " "
        parts.append(part)
        length += len(part)
    return "".join(parts)


def whitespace(generator: random.Random, size: int) -> str:
    """Indentation, blank lines and line ends of all kinds, hardly anything else."""
    parts: list[str] = []
    length = 0
    while length < size:
        part = generator.choice(_BLANKS) * generator.choice([1, 1, 1, 2, 40])
        parts.append(part)
        length += len(part)
    return "".join(parts)


STRESSES: dict[str, Callable[[random.Random, int], str]] = {
    "repeats": repeats,
    "unicode": unicode,
    "whitespace": whitespace,
}


def _phrase(generator: random.Random, words: int) -> str:
    return " ".join(generator.choices(_WORDS, k=words))
