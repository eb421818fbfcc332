"""Sets of ids as bit masks: the sorted union of batches, and the rank of each id in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.kernels.library import native_operators


@dataclass(frozen=True)
class IdSet:
    """Ids of a graph.

    ``ids`` ``[n]``, ascending. ``words`` int32 ``[ceil(num_nodes / 32), 2]``: the bits of 32 ids,
    and the number of smaller ids in the set; a quarter of a byte a node.
    """

    ids: Tensor
    words: Tensor

    @property
    def nbytes(self) -> int:
        """Memory of both tensors."""
        return self.ids.nbytes + self.words.nbytes

    def gather(self, rows: Tensor, ids: Tensor) -> Tensor:
        """Rows of ``ids`` out of those of the set, bit for bit.

        ``rows`` ``[n, ...]``, one of each of the set's ids in their order; ``ids`` int32 or int64
        ``[m]``, repeats allowed, all on the device of the set. Returns ``[m, ...]``. Raises
        ``UsageError`` for a wrong argument or, on a CPU, an id that is not in the set; on a GPU
        that fails a device assert.
        """
        with native_operators() as ops:
            return ops.gather_of_set(rows, self.words, ids)

    def ones(self, batches: Sequence[Tensor], first: int, out: Tensor) -> Tensor:
        """Write a one wherever a batch has an id of the set; zeros are left as they are.

        ``out`` float16 ``[pieces, batches, width]``: columns of all pieces, one after the other,
        are the set's ids from the ``first`` on. Raises ``UsageError`` for a wrong argument.
        """
        with native_operators() as ops:
            ops.ones_of_set(list(batches), self.words, first, out)
        return out


def union_ids(batches: Sequence[Tensor], num_nodes: int, shared: bool = False) -> IdSet:
    """The ids that occur in ``batches``; ``shared``: those that occur at least twice.

    ``batches``: at least one, ids int32 or int64 of one dtype and device, in any order, below
    ``num_nodes``. On a GPU the host waits once, for their number. Raises ``UsageError`` for a wrong
    argument or, on a CPU, an id out of range; on a GPU that fails a device assert.
    """
    if not batches:
        raise UsageError("batches is empty; give at least one")
    with native_operators() as ops:
        return IdSet(*ops.union_ids(list(batches), num_nodes, shared))
