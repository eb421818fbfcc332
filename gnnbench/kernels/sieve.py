"""SIEVE's queue, updated one batch at a time."""

from __future__ import annotations

from torch import Tensor

from gnnbench.kernels.library import native_operators


def sieve_insert(
    nodes: Tensor, newer: Tensor, visited: Tensor, state: Tensor, ids: Tensor
) -> tuple[Tensor, Tensor]:
    """Insert ``ids`` int64 ``[n]``, which are distinct and not in the queue, one after the other.

    ``nodes`` int64, ``newer`` int32, ``visited`` uint8 ``[capacity]`` and ``state`` int64 ``[5]``
    are the queue (:class:`gnnbench.features.policies.sieve.Sieve`), all on the CPU, and are
    changed. Returns
    the slots of ``ids`` at the end, int32 ``[n]``, -1 of one that was evicted again, and the nodes
    that were evicted, int64, one that came with ``ids`` among them. Raises ``UsageError`` for a
    wrong argument, and for a state that is none of such a queue.
    """
    with native_operators() as ops:
        return ops.sieve_insert(nodes, newer, visited, state, ids)
