"""Gather of feature rows."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.kernels.access import (
    ACCESSES,
    ALIGNED,
    DEPTH,
    ELEMENTWISE,
    NAIVE,
    PAGE_BYTES,
    PAGE_ORDERED,
    READERS,
    SHIFTED,
)
from gnnbench.kernels.library import native_operators
from gnnbench.kernels.lookup import IdLookup


def gather(table: Tensor, ids: Tensor, out: Tensor | None = None) -> Tensor:
    """Rows of a table: ``table[ids]``, all cores, bit for bit.

    ``table`` ``[n, ...]`` of any dtype, contiguous; ``ids`` int32 or int64 ``[m]``, repeats
    allowed. Returns ``[m, ...]``; ``out``, of that shape and the table's dtype, is filled
    and returned where given (a pinned staging buffer, say; after an error its content is
    undefined). Raises ``UsageError`` for a wrong argument or an id that is not a row.
    """
    with native_operators() as ops:
        if out is None:
            return ops.gather(table, ids)
        ops.gather_out(table, ids, out)
    return out


def gather_to(table: Tensor, ids: Tensor, places: Tensor, out: Tensor, blocks: int = 0) -> None:
    """Gather rows to places of a result: ``out[places] = table[ids]``, each written once.

    ``table`` ``[n, ...]``, contiguous; ``ids`` int32 or int64 ``[m]``; ``places`` int32 ``[m]``,
    distinct; ``out`` ``[k, ...]`` in the table's dtype, apart from it. All are on one device; for a
    GPU the table may be in host memory locked for CUDA, which at most ``blocks`` blocks of 256
    threads read (0: no limit). Raises ``UsageError`` for a wrong argument, and on the CPU for an id
    or a place that is no row; on a GPU these fail a device assert.
    """
    with native_operators() as ops:
        ops.gather_to(table, ids, places, out, blocks)


def gather_over_out(
    table: Tensor,
    kept: Tensor,
    slots: Tensor,
    generations: Tensor,
    generation: int,
    ids: Tensor,
    out: Tensor,
    remember: bool = False,
) -> int:
    """Gather on the host: cached rows from ``kept``, the others from the table.

    ``table``, ``ids`` and ``out`` as in :func:`gather`, ``out`` apart from ``kept`` ``[k, ...]``;
    the rest as in :func:`gather_over`. Returns the number of cached rows. Raises
    ``UsageError`` as :func:`gather`; ``out`` and the remembered slots are then undefined.
    """
    with native_operators() as ops:
        return ops.gather_over_out(table, kept, slots, generations, generation, remember, ids, out)


def gather_zero_copy(
    table: Tensor,
    ids: Tensor,
    access: str = NAIVE,
    page_bytes: int = PAGE_BYTES,
    blocks: int = READERS,
    depth: int = DEPTH,
    out: Tensor | None = None,
) -> Tensor:
    """Rows of a table in locked host memory, read by a kernel on the device of ``ids``.

    ``table`` ``[n, ...]`` on the CPU, contiguous, wholly inside memory locked for CUDA (pinned by
    torch, or ``cudaHostRegister``); ``ids`` int32 or int64 ``[m]`` on a CUDA device. Returns
    ``[m, ...]`` on that device, bit for bit. ``access``: ``naive``, rows in the order of the ids;
    ``aligned``, the same by whole lines of 128 bytes (PyTorch-Direct, section 3.2.1: circular
    shift); ``page-ordered``, rows of ``page_bytes`` of the table together, by ``blocks`` blocks,
    ``depth`` rows at once by the lanes of each; ``elementwise``, PyTorch-Direct's Listing 2: a
    thread for each 4 bytes of the result, ``elementwise-shifted`` with its circular shift. These
    two need rows of a multiple of 4 bytes. ``out``, of the result's shape, dtype and device, is
    filled and returned where given.
    Raises ``UsageError`` for a wrong argument, memory that is not locked among them; an id that is
    not a row fails a device assert.
    """
    if not ids.is_cuda:
        raise UsageError("ids must be on a CUDA device, which reads the table")
    if access not in ACCESSES:
        raise UsageError(f"access must be one of {', '.join(ACCESSES)}, it is {access!r}")
    name = "gather_zero_copy"
    arguments: tuple[object, ...] = (table, ids, access == ALIGNED)
    if access == PAGE_ORDERED:
        name, arguments = "gather_page_ordered", (table, ids, page_bytes, blocks, depth)
    elif access in ELEMENTWISE:
        name, arguments = "gather_elementwise", (table, ids, access == SHIFTED)
    with native_operators() as ops:
        if out is None:
            return getattr(ops, name)(*arguments)
        getattr(ops, f"{name}_out")(*arguments, out)
    return out


def gather_by_copies(table: Tensor, ids: Tensor, out: Tensor, together: bool = False) -> Tensor:
    """Copy rows of a table in locked host memory, each by a ``cudaMemcpyAsync`` of its own.

    PyTorch-Direct, section 5: a series of DMA requests, back to back. ``together`` gives the driver
    all requests in one call (``cudaMemcpyBatchAsync``). ``table`` as in
    :func:`gather_zero_copy`; ``ids`` int32 or int64 ``[m]`` on the CPU. Fills and returns ``out``
    ``[m, ...]`` on a CUDA device, in the table's dtype, bit for bit. Raises ``UsageError`` for a
    wrong argument or an id that is not a row, before the first copy.
    """
    with native_operators() as ops:
        ops.gather_by_copies(table, ids, out, together)
    return out


def gather_once(
    table: Tensor,
    batches: Sequence[Tensor],
    distinct: Tensor,
    out: Tensor,
    blocks: int = READERS,
    depth: int = DEPTH,
) -> Tensor:
    """Gather rows of several batches from locked host memory; each row is read once.

    ``table`` as in :func:`gather_zero_copy`; ``batches``: at least one, ids as there, any of them
    in several batches or more than once in one. Fills and returns ``out`` ``[m, ...]`` on the
    device, in the table's dtype: the rows of all, one batch behind the other, bit for bit. Rows are
    read in the order of their ids and written wherever they are wanted. ``distinct`` int64 ``[1]``
    there grows by the number of rows read. The host waits for nothing. Raises ``UsageError`` as
    :func:`gather_zero_copy`.
    """
    if not batches or not all(ids.is_cuda for ids in batches):
        raise UsageError("batches must be at least one, on a CUDA device, which reads the table")
    with native_operators() as ops:
        ops.gather_once(table, list(batches), distinct, out, blocks, depth)
    return out


def gather_over(
    table: Tensor,
    kept: Tensor,
    slots: Tensor,
    generations: Tensor,
    generation: int,
    ids: Tensor,
    hits: Tensor,
    remember: bool = False,
    page_bytes: int = PAGE_BYTES,
    blocks: int = READERS,
    depth: int = DEPTH,
) -> Tensor:
    """Single-pass gather: cached rows from the device, misses page by page from the host table.

    ``table`` and ``ids`` as in :func:`gather_zero_copy`; ``kept`` ``[k, ...]`` on the device of the
    ids. Row ``slots[id]`` of it is that of ``id`` where ``generations[id] == generation``, both
    int32 ``[n]`` there. ``hits`` int64 ``[1]`` there grows by the number of cached rows.
    ``remember`` (with distinct ids) stores the position of each id as its slot, under the next
    generation. The host waits for nothing. Returns ``[m, ...]``, bit for bit. Raises
    ``UsageError`` as :func:`gather_zero_copy`.
    """
    if not ids.is_cuda:
        raise UsageError("ids must be on a CUDA device, which reads the table")
    with native_operators() as ops:
        return ops.gather_over(
            table, kept, slots, generations, generation, remember, ids, hits, page_bytes, blocks,
            depth,
        )  # fmt: skip


def gather_over_cache(
    table: Tensor,
    last: tuple[Tensor, IdLookup],
    cache: tuple[Tensor, IdLookup],
    ids: Tensor,
    hits: Tensor,
    page_bytes: int = PAGE_BYTES,
    blocks: int = READERS,
    depth: int = DEPTH,
) -> Tensor:
    """Match over a cache in a single pass: the last batch's rows, cached rows, rows of the table.

    ``last`` and ``cache``: rows ``[k, ...]`` on the device of the ids and their look-up there. A
    row comes from the first that has it, else from the table. ``hits`` int64 ``[2]`` there grows by
    the number of rows of each. The position of each id, which must be distinct, is stored in the
    look-up of ``last`` under the next generation. Other arguments, the result and errors are those
    of :func:`gather_over`. The host waits for nothing.
    """
    if not ids.is_cuda:
        raise UsageError("ids must be on a CUDA device, which reads the table")
    (rows, known), (cached, in_cache) = last, cache
    with native_operators() as ops:
        return ops.gather_over_cache(
            table, rows, known.slots, known.generations, known.generation, True, cached,
            in_cache.slots, in_cache.generations, in_cache.generation, ids, hits, page_bytes,
            blocks, depth,
        )  # fmt: skip
