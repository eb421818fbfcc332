"""Gather from a table that is sharded over the GPUs of a group."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.kernels.access import PAGE_BYTES, READERS
from gnnbench.kernels.library import native_operators

MOST_SHARDS = 64  # native/cuda/features/sharded.h
SHARD_DEPTH = 2
OWN, PEER, TABLE = range(3)  # places in ``counts``


def shard_rows(rows: int, rank: int, ranks: int) -> int:
    """Number of rows of a rank under round-robin sharding: rank, rank + ranks, ..."""
    return len(range(rank, rows, ranks))


def gather_sharded(
    shards: Sequence[Tensor],
    own: int,
    places: Tensor | None,
    table: Tensor | None,
    ids: Tensor,
    counts: Tensor,
    blocks: int = 0,
    depth: int = SHARD_DEPTH,
    page_bytes: int = PAGE_BYTES,
    readers: int = READERS,
) -> Tensor:
    """Gather rows from shards on several GPUs, and missing rows from locked host memory.

    ``shards``: one to 64, ``[k, ...]`` of one dtype and shape of rows, each of which the device of
    the ids reads (``OpenedDeviceMemory``), shard ``own`` in its memory. Place p is row ``p //
    len(shards)`` of shard ``p % len(shards)``. ``places`` int32 ``[num_nodes]`` on the device has
    an id's place, -1 where no shard has its row; None: an id is its place. ``table`` ``[num_nodes,
    ...]`` is locked host memory, as in ``gather_zero_copy``, or None where no row is without a
    place; page by page, by ``readers`` blocks, or with ``page_bytes=0`` in the order of the ids.
    ``ids`` int32 or int64 ``[m]`` on a CUDA device. ``counts`` int64 ``[3]`` there grows by the
    rows of the own shard, of others, of the table. Shards are read by at most ``blocks`` blocks of
    256 threads (0: no limit), ``depth`` (1, 2 or 4) rows at once by the lanes of each.

    Returns ``[m, ...]`` on that device, bit for bit. The host waits for nothing. Raises
    ``UsageError`` for a wrong argument; an id or a place that is not there fails a device assert.
    """
    if not ids.is_cuda:
        raise UsageError("ids must be on a CUDA device, which reads the shards")
    with native_operators() as ops:
        return ops.gather_sharded(
            list(shards), own, places, table, ids, counts, blocks, depth, page_bytes, readers
        )


def check_peer_access(own: int, others: Sequence[int]) -> None:
    """Raise ``UnsupportedError`` where GPU ``own`` cannot read the memory of one of ``others``."""
    for other in others:
        if other != own and not torch.cuda.can_device_access_peer(own, other):
            raise UnsupportedError(
                f"features 'sharded': GPU {own} cannot read the memory of GPU {other} (no peer"
                " access); take GPUs that are joined by NVLink, or features=cache, which keeps a"
                " cache in each"
            )
