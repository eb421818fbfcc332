"""Gather of feature rows."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.errors import UsageError
from gnnbench.ops.library import load_native, native_errors


def gather(table: Tensor, ids: Tensor, out: Tensor | None = None) -> Tensor:
    """Rows of a table: ``table[ids]``, all cores, bit for bit.

    ``table`` ``[n, ...]`` of any dtype, contiguous; ``ids`` int32 or int64 ``[m]``, repeats
    allowed. Returns ``[m, ...]``; ``out``, of that shape and the table's dtype, is filled
    and returned where given (a pinned staging buffer, say; after an error its content is
    undefined). Raises ``UsageError`` for a wrong argument or an id that is not a row.
    """
    load_native()
    with native_errors():
        if out is None:
            rows: Tensor = torch.ops.gnnbench.gather(table, ids)
            return rows
        torch.ops.gnnbench.gather_out(table, ids, out)
    return out


def gather_zero_copy(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of a table in locked host memory, read by a kernel on the device of ``ids``.

    ``table`` ``[n, ...]`` on the CPU, contiguous, wholly inside memory locked for CUDA (pinned by
    torch, or ``cudaHostRegister``); ``ids`` int32 or int64 ``[m]`` on a CUDA device. Returns
    ``[m, ...]`` on that device, bit for bit. Raises ``UsageError`` for a wrong argument, memory
    that is not locked among them; an id that is not a row fails a device assert.
    """
    if not ids.is_cuda:
        raise UsageError("ids must be on a CUDA device, which reads the table")
    load_native()
    with native_errors():
        rows: Tensor = torch.ops.gnnbench.gather_zero_copy(table, ids)
    return rows
