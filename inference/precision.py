"""Mixed precision: one numerics for the linear layers of a model, and others for some of them by name.

The names are those of the converted form, e.g. ``layers.0.attn.qkv``, ``layers.23.mlp.down`` and ``head``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from inference.api import NUMERICS, EngineConfig, Numerics
from inference.errors import UnsupportedNumerics
from inference.weights.layout import linear_names

HEAD = "head"


@dataclass(frozen=True)
class Precision:
    """Numerics by the name of a linear layer.

    Attributes:
        base: of layers that no rule names. The quantised forms of bitsandbytes leave the head in bf16, as
            transformers does with them.
        rules: glob patterns over the names, in which ``*`` also matches dots, and the numerics of what they
            match. The first match wins.
    """

    base: Numerics
    rules: tuple[tuple[str, Numerics], ...] = ()

    @classmethod
    def parse(cls, base: Numerics, mixed: str) -> Precision:
        """From the words of ``--mixed``: ``PATTERN=NUMERICS,...``, e.g. ``layers.0.*=bf16,head=fp32``.

        Raises:
            ValueError: saying what is accepted.
        """
        rules: list[tuple[str, Numerics]] = []
        for part in filter(None, (part.strip() for part in mixed.split(","))):
            pattern, sign, name = (word.strip() for word in part.partition("="))
            numerics = next((known for known in NUMERICS if known == name), None)
            if not (pattern and sign) or numerics is None:
                raise ValueError("PATTERN=NUMERICS, separated by commas, of " + ", ".join(NUMERICS))
            rules.append((pattern, numerics))
        return cls(base, tuple(rules))

    @property
    def mixed(self) -> str:
        """The rules in the words of ``parse``; equal rules give equal words."""
        return ",".join(f"{pattern}={numerics}" for pattern, numerics in self.rules)

    def __str__(self) -> str:
        """For records and reports: ``int8``, or ``int8+head=fp32``."""
        return f"{self.base}+{self.mixed}" if self.rules else self.base

    @property
    def embedding(self) -> Numerics:
        """Of a head that no rule names, and of the embedding, which int8 stores as fp16 all the same."""
        return "bf16" if self.base in ("nf4", "llm-int8") else self.base

    @property
    def used(self) -> frozenset[Numerics]:
        """All that layers and embedding may have, whatever the model."""
        return frozenset({self.base, self.embedding, *(numerics for _, numerics in self.rules)})

    def of(self, name: str) -> Numerics:
        """Of one linear layer."""
        rest = self.embedding if name == HEAD else self.base
        return next((numerics for pattern, numerics in self.rules if fnmatchcase(name, pattern)), rest)

    def layers(self, layer_count: int) -> frozenset[Numerics]:
        """What the linear layers other than the head have."""
        return frozenset(self.of(name) for name in linear_names(layer_count) if name != HEAD)

    def check(self, layer_count: int) -> None:
        """Raises:
        UnsupportedNumerics: a rule names no linear layer of a model with so many layers.
        """
        left = set(linear_names(layer_count))
        for pattern, _ in self.rules:
            matched = {name for name in linear_names(layer_count) if fnmatchcase(name, pattern)}
            if not matched & left:
                why = (
                    "earlier patterns match all that it does" if matched else "no linear layer has that name"
                )
                raise UnsupportedNumerics(
                    f"The pattern {pattern!r} of --mixed changes nothing: {why}.", _names(layer_count)
                )
            left -= matched


def precision_of(config: EngineConfig) -> Precision:
    """What an engine runs.

    Raises:
        UnsupportedNumerics: ``mixed`` cannot be read.
    """
    try:
        return Precision.parse(config.numerics, config.mixed)
    except ValueError as error:
        raise UnsupportedNumerics(f"--mixed {config.mixed!r} cannot be read.", f"Write {error}.") from error


def _names(layer_count: int) -> str:
    of_layer = ", ".join(name.removeprefix("layers.0.") for name in linear_names(1)[:-1])
    return (
        f"This model has layers.0 to layers.{layer_count - 1}, each with {of_layer}, and {HEAD}: "
        "write e.g. layers.0.*, layers.*.mlp.down or head."
    )
