"""Native generator of the features of ``gnnbench.datasets.generators.seeded``.

The bits are the same; the speed is that of memory writes.
"""

from __future__ import annotations

from torch import Tensor

from gnnbench.kernels.library import native_operators


def fill_features(key: int, labels: Tensor, centres: Tensor, first: int, out: Tensor) -> None:
    """Rows ``first`` to ``first + rows`` of the table into ``out`` float32 ``[rows, width]``.

    ``key`` is that of numpy's Philox, 128 bits; ``labels`` int64 ``[num_nodes]``; ``centres`` int16
    ``[classes + 1, width]`` in 1/256, the last row for label -1. Runs on torch's threads. Raises
    ``UsageError``, and ``DataError`` for a label beyond the classes.
    """
    words = [(key >> shift) % (1 << 64) for shift in (0, 64)]
    signed = [word - (word >> 63 << 64) for word in words]
    with native_operators() as ops:
        ops.seeded_features(signed, labels, centres, first, out)
