"""Balances training nodes among parts, by swaps that cut few more edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import scipy.sparse as sp  # which workers of other environments may lack

Ids = npt.NDArray[np.int64]
ROUNDS = 8  # gains are computed anew in each


def share_evenly(
    between: sp.csr_matrix, owners: Ids, training: npt.NDArray[np.bool_], parts: int
) -> Ids:
    """Return owners int64 ``[n]`` such that parts' training nodes differ by at most one.

    ``between`` ``[n, n]``: weights of the edges between nodes, symmetric; ``training`` ``[n]``.
    A part with too many gives the nodes of largest gain: edges to the receiving part, minus edges
    to their own. It gets as many other nodes back, chosen likewise, so parts keep their size as
    far as nodes are available. A round moves half of the surplus, the last one the rest. Nothing
    is random; ties go to the smaller id.
    """
    owners = owners.copy()
    for left in reversed(range(ROUNDS)):
        have = np.bincount(owners[training], minlength=parts)
        over = have - _quota(have)
        if not over.any():
            break
        allowed = int(over[over > 0].sum())
        allowed = allowed if left == 0 else (allowed + 1) // 2
        givers, takers = np.flatnonzero(over > 0), np.flatnonzero(over < 0)
        from_over = training & np.isin(owners, givers)
        moved = _move(
            between, owners, from_over, np.maximum(-over, 0), np.maximum(over, 0), allowed
        )
        # Return as many other nodes from each taker to each giver.
        from_takers = ~training & np.isin(owners, takers)
        _move_back(between, owners, from_takers, moved)
    return owners


def _quota(have: Ids) -> Ids:
    """Return even shares; the remainder goes to the largest parts."""
    parts = have.size
    quota = np.full(parts, have.sum() // parts)
    quota[np.argsort(-have, kind="stable")[: have.sum() % parts]] += 1
    return quota


def _links(between: sp.csr_matrix, owners: Ids, nodes: Ids, parts: int) -> Ids:
    """Return the weights of the edges from each of ``nodes`` to each part, ``[nodes, parts]``."""
    import scipy.sparse as sp

    n = owners.size
    member = sp.csr_matrix((np.ones(n, np.int64), (np.arange(n), owners)), (n, parts))
    return (between[nodes] @ member).toarray()


def _move(
    between: sp.csr_matrix,
    owners: Ids,
    may: npt.NDArray[np.bool_],
    room: Ids,
    spare: Ids,
    most: int,
) -> Ids:
    """Move at most ``most`` nodes, best gains first; returns how many, ``[from, to]``."""
    parts = room.size
    room, spare = room.copy(), spare.copy()
    nodes = np.flatnonzero(may)
    links = _links(between, owners, nodes, parts)
    takers = np.flatnonzero(room > 0)
    gains = links[:, takers] - links[np.arange(nodes.size), owners[nodes]][:, None]
    went = np.zeros((parts, parts), np.int64)
    done = np.zeros(nodes.size, bool)
    for at in np.argsort(-gains, axis=None, kind="stable"):
        if most == 0:
            break
        which, taker = at // takers.size, takers[at % takers.size]
        giver = owners[nodes[which]]
        if done[which] or room[taker] == 0 or spare[giver] == 0:
            continue
        owners[nodes[which]] = taker
        done[which] = True
        room[taker] -= 1
        spare[giver] -= 1
        went[giver, taker] += 1
        most -= 1
    return went


def _move_back(between: sp.csr_matrix, owners: Ids, may: npt.NDArray[np.bool_], went: Ids) -> None:
    """Move ``went[a, b]`` nodes from b to a, best gains first, or all there are."""
    for giver, taker in np.argwhere(went > 0):
        nodes = np.flatnonzero(may & (owners == taker))
        links = _links(between, owners, nodes, went.shape[0])
        gains = links[:, giver] - links[:, taker]
        best = nodes[np.argsort(-gains, kind="stable")[: went[giver, taker]]]
        owners[best] = giver
