"""Causal attention over a KV slot whose result for a row depends on that row's position alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from inference.cache.kv import KV_BUCKET


@dataclass(frozen=True)
class RowGroup:
    """Consecutive query rows that share one call.

    Attributes:
        start, stop: rows of the block, [start, stop).
        tile: positions per tile; the rows are padded to a multiple of it.
        bucket: key positions attended to, a multiple of KV_BUCKET.
        mask: float32 [tiles, 1, tile * group, bucket]; 0 where visible, -inf elsewhere.
    """

    start: int
    stop: int
    tile: int
    bucket: int
    mask: torch.Tensor


def plan_rows(
    first: int, rows: int, group: int, tiles: tuple[int, ...], device: torch.device, dtype: torch.dtype
) -> list[RowGroup]:
    """Cut a block of new positions [first, first + rows) into groups of one bucket and tile size.

    Args:
        group: query heads per key/value head.
        tiles: tile sizes that give the same bits on this machine, ascending; with one
            entry every row goes through that shape, padded if need be.
    """
    groups = []
    row = 0
    while row < rows:
        bucket = ((first + row) // KV_BUCKET + 1) * KV_BUCKET
        stop = min(rows, bucket - first)
        while row < stop:
            tile = max((t for t in tiles if t <= stop - row), default=tiles[0])
            end = row + max((stop - row) // tile, 1) * tile
            groups.append(_group(first, row, min(end, stop), tile, bucket, group, device, dtype))
            row = min(end, stop)
    return groups


def _group(
    first: int,
    start: int,
    stop: int,
    tile: int,
    bucket: int,
    group: int,
    device: torch.device,
    dtype: torch.dtype,
) -> RowGroup:
    tiles = -(-(stop - start) // tile)
    # Padding rows repeat the last position: they must see something, or softmax gives NaN.
    positions = torch.arange(start, start + tiles * tile, device=device).clamp_(max=stop - 1) + first
    visible = torch.arange(bucket, device=device)[None, :] <= positions[:, None]
    mask = torch.zeros(visible.shape, device=device, dtype=dtype).masked_fill_(~visible, float("-inf"))
    mask = mask.view(tiles, 1, tile, 1, bucket).expand(tiles, 1, tile, group, bucket)
    return RowGroup(start, stop, tile, bucket, mask.reshape(tiles, 1, tile * group, bucket))


def attend(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, groups: list[RowGroup], scale: float
) -> torch.Tensor:
    """Attention of new rows over the slot.

    The query heads of one key/value head become rows of one matrix (grouped-query attention,
    arXiv 2305.13245), and tiles of positions become batch entries: every matrix product has the
    shape [tile * group, head dim] x [head dim, bucket] whatever the size of the block.

    Args:
        query: [rows, heads, head dim].
        keys, values: [kv heads, capacity, head dim], the new rows already written.

    Returns:
        [rows, heads * head dim].
    """
    _, heads, dim = query.shape
    kv_heads = keys.shape[0]
    group = heads // kv_heads
    parts = []
    for g in groups:
        tiles = g.mask.shape[0]
        q = query[g.start : g.stop]
        padding = tiles * g.tile - (g.stop - g.start)
        if padding:
            q = torch.cat((q, q[-1:].expand(padding, -1, -1)))
        q = q.reshape(tiles, g.tile, kv_heads, group, dim).transpose(1, 2)
        q = q.reshape(tiles, kv_heads, g.tile * group, dim)
        k = keys[:, : g.bucket].unsqueeze(0).expand(tiles, -1, -1, -1)
        v = values[:, : g.bucket].unsqueeze(0).expand(tiles, -1, -1, -1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=g.mask, scale=scale)
        out = out.view(tiles, kv_heads, g.tile, group, dim).transpose(1, 2)
        parts.append(out.reshape(tiles * g.tile, heads * dim)[: g.stop - g.start])
    return parts[0] if len(parts) == 1 else torch.cat(parts)
