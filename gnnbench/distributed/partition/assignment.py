"""A partition: which part owns each node, and the nodes numbered by owner."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError


@dataclass(frozen=True)
class Partition:
    """Nodes split over ``parts`` owners (FastSample, section 3.3: by nodes, a part may be empty).

    Nodes are numbered anew, part by part and in a part by original id; that number is a node's
    *place*. Part ``p`` owns the places ``offsets[p]`` to ``offsets[p + 1]``, so the owner of a
    place is found by a search in ``parts + 1`` numbers.

    ``offsets``   int64 ``[parts + 1]``
    ``original``  int64 ``[num_nodes]``, the original id of each place
    ``places``    int64 ``[num_nodes]``, the place of each original id
    ``method``, ``seed``: what it was made by; ``made_s``: seconds that took, None where nobody
    looked.

    All on the CPU. Made by :meth:`of_owners` or
    ``gnnbench.distributed.partition.methods.partition``.
    """

    offsets: Tensor
    original: Tensor
    places: Tensor
    method: str = ""
    seed: int = 0
    made_s: float | None = None
    _copies: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of_owners(
        cls, owners: Tensor, parts: int, method: str = "given", seed: int = 0
    ) -> Partition:
        """The partition in which ``owners`` (integers ``[num_nodes]``) says who owns each node.

        Raises ``UsageError`` for ``parts`` below 1 and for owners that are not 0 to ``parts`` - 1.
        """
        if parts < 1:
            raise UsageError(f"a partition has at least 1 part, not {parts}")
        owners = owners.to("cpu", torch.int64)
        if owners.ndim != 1:
            raise UsageError(f"owners must have one dimension, they have {owners.ndim}")
        if owners.numel() and not 0 <= int(owners.min()) <= int(owners.max()) < parts:
            raise UsageError(f"owners must be 0 to {parts - 1}, the parts that there are")
        original = torch.argsort(owners, stable=True)
        places = torch.empty_like(original)
        places[original] = torch.arange(original.numel())
        offsets = torch.zeros(parts + 1, dtype=torch.int64)
        offsets[1:] = torch.bincount(owners, minlength=parts).cumsum(0)
        return cls(offsets, original, places, method, seed)

    @property
    def parts(self) -> int:
        """Number of parts, empty ones among them."""
        return self.offsets.numel() - 1

    @property
    def num_nodes(self) -> int:
        """Nodes of the graph."""
        return self.original.numel()

    @property
    def owners(self) -> Tensor:
        """The owner of each original id, int64 ``[num_nodes]``."""
        return owner_of(self.places, self.offsets)

    def nodes_of(self, part: int) -> Tensor:
        """Original ids of the nodes that a part owns, int64 ``[n]``, ascending."""
        return self.original[int(self.offsets[part]) : int(self.offsets[part + 1])]

    def numberings(self, device: torch.device, ids: torch.dtype) -> tuple[Tensor, Tensor]:
        """``places`` and ``original`` where a rank looks them up: on a GPU copies of the graph's
        ids' type, on a CPU as they are, which ranks of one host may have mapped from one file."""
        if device.type == "cpu":
            return self.places, self.original
        where = device, ids
        if where not in self._copies:  # one for sampler and features
            self._copies[where] = self.places.to(*where), self.original.to(*where)
        return self._copies[where]

    def own(self, part: int, nodes: Tensor) -> Tensor:
        """Those of ``nodes`` (original ids ``[n]``) that a part owns, in their order."""
        places = self.places[nodes.long()]
        mine = (places >= self.offsets[part]) & (places < self.offsets[part + 1])
        return nodes[mine]

    def digest(self) -> str:
        """A text that two partitions share where every node has the same place in both."""
        found = hashlib.blake2b(digest_size=16)
        for tensor in (self.offsets, self.original):
            found.update(tensor.contiguous().numpy().data)
        return found.hexdigest()


def owner_of(places: Tensor, offsets: Tensor) -> Tensor:
    """The part that owns each place, int64 ``[n]``; ``offsets`` on the device of ``places``."""
    return torch.searchsorted(offsets[1:], places.long(), right=True)
