"""Native generator of R-MAT graphs (``gnnbench.datasets.generators.rmat``).

All arithmetic is on integers: the same bits on every device and for any number of threads.
Generation needs 16 bytes per edge in addition to the CSC.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gnnbench.kernels.library import native_operators


def graph(
    key: int, scale: int, num_edges: int, ends: Sequence[int], names: Tensor
) -> tuple[Tensor, Tensor]:
    """CSC of in-neighbours: int64 ``indptr`` ``[2 ** scale + 1]``, int32 ``indices``
    ``[num_edges]``; rows ascend, parallel edges and self-loops are kept.

    ``ends`` are the upper ends of the quadrants (0, 0), (0, 1) and (1, 0) in 1/65536; ``names``
    int64 ``[2 ** scale]`` is a permutation, what the nodes are called. Made on its device and left
    there. Raises ``UsageError``.
    """
    with native_operators() as ops:
        return ops.rmat_graph(key, scale, num_edges, list(ends), names)
