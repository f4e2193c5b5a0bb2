"""The forward pass of the Llama family over a KV slot."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inference.api import KvNumerics
from inference.cache.kv import KvSlot
from inference.model.config import ModelConfig
from inference.model.elementwise import rms_norm
from inference.model.fused.library import Library
from inference.model.fused.stack import FusedStack
from inference.model.graphs.capture import CudaCapture
from inference.model.graphs.stack import FIXED_WIDTH, GraphStack
from inference.model.layers import Layer, TorchStack
from inference.model.linear import Linear
from inference.model.linear.padded import PaddedLinear
from inference.model.rope import RopeTable
from inference.model.tree import shape_of


@dataclass(frozen=True)
class Weights:
    """A whole decoder. ``embed`` [vocab, hidden] may be of any floating type."""

    embed: torch.Tensor
    layers: tuple[Layer, ...]
    final_norm: torch.Tensor
    head: Linear

    @property
    def layer_linears(self) -> list[Linear]:
        """The linear layers of all layers; the head is none of them."""
        return [linear for layer in self.layers for linear in layer.linears]

    @property
    def private_bytes(self) -> int:
        """Packed copies; tensors used from the mapped file are not counted."""
        return sum(linear.private_bytes for linear in [*self.layer_linears, self.head])


class Decoder:
    """Runs blocks of tokens through the model and leaves their keys and values in a slot.

    Args:
        max_positions: length of the rotary table; slots must not be longer.
        attention_tiles: tile sizes proven to give equal bits, see `attention.plan_rows`.
        library: compiled functions for the steps between the linear layers, None to use torch's.
        note: why there is no ``library``.
        kv: how its slots store keys and values.

    Attributes:
        trees: whether a block may be a tree.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        max_positions: int,
        device: torch.device,
        attention_tiles: tuple[int, ...] = (1,),
        library: Library | None = None,
        note: str = "",
        kv: KvNumerics = "fp32",
    ) -> None:
        self.config = config
        self.weights = weights
        self.device = device
        self.max_positions = max_positions
        self.fused = library is not None
        self.trees = self.fused
        self.note = note
        self.kv = kv
        rope = RopeTable(config, max_positions, device)
        self._head: Linear | PaddedLinear = weights.head
        self._stack: TorchStack | FusedStack | GraphStack
        if device.type == "cuda":
            eager = TorchStack(config, weights.layers, rope, attention_tiles)
            self._stack = GraphStack(config, weights.layers, rope, CudaCapture(device), eager)
            self._head = PaddedLinear(weights.head, FIXED_WIDTH)
        elif library is not None:
            self._stack = FusedStack(config, weights.layers, rope, library)
        else:
            self._stack = TorchStack(config, weights.layers, rope, attention_tiles)

    def measure_steps(self, laps: torch.Tensor | None) -> None:
        """Add the seconds of each compiled step to ``laps``, see `FusedStack.laps`; None ends it."""
        assert isinstance(self._stack, FusedStack)
        self._stack.laps = laps

    @property
    def graph_note(self) -> str:
        """Why forwards on a GPU are not recorded, "" if they are or there is none; known after the first."""
        return self._stack.note if isinstance(self._stack, GraphStack) else ""

    def new_slot(self, capacity: int) -> KvSlot:
        """Empty buffers for ``capacity`` tokens."""
        return KvSlot(self.config, capacity, self.device, self.kv)

    def forward(
        self,
        tokens: list[int],
        slot: KvSlot,
        logits_from: int | None = 0,
        parents: list[int] | None = None,
    ) -> torch.Tensor | None:
        """Append tokens to the slot.

        A tree takes as many places in the slot as it has rows. `KvSlot.keep` then leaves those of one path.

        Args:
            tokens: ids for the positions slot.length ..; the slot must have room for them.
            logits_from: first row of the block whose logits are wanted; None for no logits.
                Only these rows pass through the output head.
            parents: for each row the row before it, -1 for the first alone; None for a chain. The bits of a
                row are those it has in a chain of its ancestors.

        Returns:
            float32 [len(tokens) - logits_from, vocab], or None.
        """
        config, first, rows = self.config, slot.length, len(tokens)
        if not 0 < rows <= min(slot.capacity, self.max_positions) - first:
            # Compiled functions would read and write beyond the ends.
            raise ValueError(f"{rows} rows do not fit behind {first} of {slot.capacity} positions")
        if parents is not None and len(parents) != rows:
            raise ValueError(f"{len(parents)} parents of {rows} rows")
        tree = None if parents is None else shape_of(parents)
        if tree is not None and not self.trees:
            raise ValueError("this decoder runs chains only")
        ids = torch.tensor(tokens, device=self.device)
        x = self.weights.embed[ids].float()
        if config.embedding_multiplier != 1.0:
            x = x * config.embedding_multiplier
        x = self._stack(x, slot, tree)
        slot.tokens.extend(tokens)
        if logits_from is None:
            return None
        x = rms_norm(x[logits_from:], self.weights.final_norm, config.rms_eps)
        logits = self._head(x)
        return logits if config.logits_scaling == 1.0 else logits / config.logits_scaling
