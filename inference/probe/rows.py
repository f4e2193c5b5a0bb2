"""Does a row get the same bits alone and among others, at any place of a block?"""

from __future__ import annotations

import torch

from inference.cache.kv import KV_BUCKET
from inference.model.attention import attend, plan_rows
from inference.model.config import ModelConfig
from inference.model.elementwise import rms_norm, silu_times

# Positions per attention tile, if their bits agree; else the first alone, padded.
TILES = (1, 4, 16)
FIXED_TILE = 16


def choose_attention_tiles(model: ModelConfig) -> tuple[tuple[int, ...], bool]:
    """Tile sizes that give equal bits, and whether a row's place in its tile is irrelevant."""
    generator = torch.Generator().manual_seed(11)
    rows, length = 2 * FIXED_TILE + 3, 2 * KV_BUCKET
    heads, kv_heads, dim = model.n_heads, model.n_kv_heads, model.head_dim
    query = torch.randn(rows, heads, dim, generator=generator)
    keys = torch.randn(kv_heads, length, dim, generator=generator)
    values = torch.randn(kv_heads, length, dim, generator=generator)
    first = KV_BUCKET - FIXED_TILE - 1  # the block straddles a bucket
    cpu = torch.device("cpu")

    def run(tiles: tuple[int, ...], skip: int = 0) -> torch.Tensor:
        groups = plan_rows(first + skip, rows - skip, heads // kv_heads, tiles, cpu, torch.float32)
        return attend(query[skip:], keys, values, groups, model.attention_scale)

    single = run((1,))
    good = [tile for tile in TILES if torch.equal(run((tile,)), single)]
    if good == list(TILES) and torch.equal(run(TILES), single):
        return TILES, True
    fixed = run((FIXED_TILE,))
    shifted = all(torch.equal(run((FIXED_TILE,), skip), fixed[skip:]) for skip in (1, 3, 7))
    return (FIXED_TILE,), shifted


def attention_ignores_capacity(model: ModelConfig, tiles: tuple[int, ...]) -> bool:
    """Whether a slot that has grown, or that holds int8, gives the same bits.

    Only the distance in memory from one head to the next differs.
    """
    generator = torch.Generator().manual_seed(29)
    heads, kv_heads, dim = model.n_heads, model.n_kv_heads, model.head_dim
    query = torch.randn(FIXED_TILE + 1, heads, dim, generator=generator)
    wide = torch.randn(2, kv_heads, 2 * KV_BUCKET, dim, generator=generator)
    first, cpu = KV_BUCKET - FIXED_TILE - 1, torch.device("cpu")
    groups = plan_rows(first, FIXED_TILE + 1, heads // kv_heads, tiles, cpu, torch.float32)
    found = [
        attend(query, keys, values, groups, model.attention_scale)
        for keys, values in (wide, wide[:, :, :KV_BUCKET].clone())
    ]
    return torch.equal(found[0], found[1])


def elementwise_rows_agree(model: ModelConfig) -> bool:
    """Whether norm and activation give a row the same bits alone and among others."""
    generator = torch.Generator().manual_seed(13)
    rows = 41
    hidden = torch.randn(rows, model.hidden_size, generator=generator)
    weight = torch.rand(model.hidden_size, generator=generator)
    gate_up = torch.randn(rows, 2 * model.intermediate_size, generator=generator)
    normed, active = rms_norm(hidden, weight, model.rms_eps), silu_times(gate_up)
    for part in (slice(0, 1), slice(3, 22), slice(5, 38)):
        if not torch.equal(rms_norm(hidden[part], weight, model.rms_eps), normed[part]):
            return False
        if not torch.equal(silu_times(gate_up[part]), active[part]):
            return False
    return True
