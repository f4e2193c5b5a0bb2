"""The shape of a block of rows that is a tree of candidate continuations, not a chain."""

from __future__ import annotations

from dataclasses import dataclass

import torch

MAX_ROWS = 64  # MAX_TREE of attention.c


@dataclass(frozen=True)
class TreeShape:
    """Where the rows of a block stand.

    Attributes:
        depth: int32 [rows]; row r stands ``depth[r]`` positions behind the first row of the block.
        path: int32 [rows, rows]; ``path[r, d]`` is the ancestor of r, or r itself, at depth d.
    """

    depth: torch.Tensor
    path: torch.Tensor


def shape_of(parents: list[int]) -> TreeShape | None:
    """The shape of rows with these parents; None if it is a chain.

    Args:
        parents: for each row the index of the row before it; -1 for the first row alone.

    Raises:
        ValueError: a parent does not come before its row, or there are too many rows.
    """
    if parents == list(range(-1, len(parents) - 1)):
        return None
    rows = len(parents)
    if rows > MAX_ROWS:
        raise ValueError(f"a tree of {rows} rows; at most {MAX_ROWS}")
    paths: list[list[int]] = []
    for row, parent in enumerate(parents):
        if not (parent == -1 if row == 0 else 0 <= parent < row):
            raise ValueError(f"row {row} has parent {parent}")
        paths.append([*(paths[parent] if row else ()), row])
    depth = torch.tensor([len(path) - 1 for path in paths], dtype=torch.int32)
    padded = [path + [0] * (rows - len(path)) for path in paths]
    return TreeShape(depth, torch.tensor(padded, dtype=torch.int32))
