"""Feature rows compared with the table, bit by bit, on any device.

Rows are fetched from the table by torch on the host, by none of the operators that are looked at.
Those of a GPU's are compared there, and fetched into locked buffers that take turns, so that a copy
overlaps the next piece's fetch; comparing takes no more of its memory than a piece or two::

    host    | fetch 1 | fetch 2 | fetch 3 ...
    link              | copy 1  | copy 2 ...
    GPU                         | compare 1 ...
"""

from __future__ import annotations

import torch
from torch import Tensor

PIECE = 1 << 23  # bytes compared at a time: what is compared stays in the caches
BUFFERS = 2
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of a value


def same_rows(table: Tensor, ids: Tensor, rows: Tensor) -> bool:
    """Whether ``rows[i]`` has the bits of ``table[ids[i]]``.

    ``table`` ``[n, ...]`` on the host, ``ids`` integer ``[k]`` and ``rows`` anywhere. False, too,
    where rows have another shape or dtype, or an id is none of the table's.
    """
    asked, on = ids.cpu().long(), rows.device
    if (rows.shape, rows.dtype) != ((asked.numel(), *table.shape[1:]), table.dtype):
        return False
    if not rows.numel():
        return True
    if int(asked.min()) < 0 or int(asked.max()) >= table.shape[0]:
        return False
    away, bits = on.type == "cuda", BITS[table.element_size()]
    some = max(PIECE // max(table[:1].nbytes, 1), 1)
    shape = (min(some, asked.numel()), *table.shape[1:])
    buffers = [
        torch.empty(shape, dtype=table.dtype, pin_memory=away)
        for _ in range(BUFFERS if away else 1)
    ]
    read = [torch.cuda.Event() for _ in buffers] if away else []
    wrong = torch.zeros((), dtype=torch.bool, device=on)
    for nth, (few, found) in enumerate(zip(asked.split(some), rows.split(some), strict=True)):
        at = nth % len(buffers)
        if away:
            read[at].synchronize()  # one that was never recorded is over
        wanted = buffers[at][: few.numel()]
        torch.index_select(table, 0, few, out=wanted)
        if not away:
            if not torch.equal(found.view(bits), wanted.view(bits)):
                return False
            continue
        there = wanted.to(on, non_blocking=True)
        read[at].record(torch.cuda.current_stream(on))
        wrong |= (found.view(bits) != there.view(bits)).any()
    return not bool(wrong)
