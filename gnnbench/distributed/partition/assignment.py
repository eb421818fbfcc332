"""A partition: the part that owns each node, and nodes numbered by owner."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError


@dataclass(frozen=True)
class Partition:
    """Nodes split over ``parts`` owners (FastSample, section 3.3: by nodes, a part may be empty).

    A node's *place* is its number in the order of parts and, within a part, of original ids. Part
    ``p`` owns the places ``offsets[p]`` to ``offsets[p + 1]``, so a binary search in ``parts + 1``
    numbers finds the owner of a place.

    ``offsets``   int64 ``[parts + 1]``
    ``original``  int64 ``[num_nodes]``, the original id of each place
    ``places``    int64 ``[num_nodes]``, the place of each original id
    ``method``, ``seed``: how the partition was made; ``made_s``: seconds it took, None if not
    measured.

    All on the CPU. Built by :meth:`of_owners` or
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
        """Build a partition from the owner of each node (integers ``[num_nodes]``).

        Raises ``UsageError`` for ``parts`` below 1 and for owners that are not 0 to ``parts`` - 1.
        """
        if parts < 1:
            raise UsageError(f"a partition has at least 1 part, not {parts}")
        owners = owners.to("cpu", torch.int64)
        if owners.ndim != 1:
            raise UsageError(f"owners must have one dimension, they have {owners.ndim}")
        if owners.numel() and not 0 <= int(owners.min()) <= int(owners.max()) < parts:
            raise UsageError(f"owners must be 0 to {parts - 1}, the numbers of the parts")
        original = torch.argsort(owners, stable=True)
        places = torch.empty_like(original)
        places[original] = torch.arange(original.numel())
        offsets = torch.zeros(parts + 1, dtype=torch.int64)
        offsets[1:] = torch.bincount(owners, minlength=parts).cumsum(0)
        return cls(offsets, original, places, method, seed)

    @property
    def parts(self) -> int:
        """Return the number of parts, including empty ones."""
        return self.offsets.numel() - 1

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes."""
        return self.original.numel()

    @property
    def owners(self) -> Tensor:
        """Return the owner of each original id, int64 ``[num_nodes]``."""
        return owner_of(self.places, self.offsets)

    def nodes_of(self, part: int) -> Tensor:
        """Return the original ids of a part's nodes, int64 ``[n]``, ascending."""
        return self.original[int(self.offsets[part]) : int(self.offsets[part + 1])]

    def numberings(self, device: torch.device, ids: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return ``places`` and ``original`` on a device.

        On a GPU they are copies of dtype ``ids``. On a CPU they are not copied, because ranks of
        one host may map them from one file.
        """
        if device.type == "cpu":
            return self.places, self.original
        where = device, ids
        if where not in self._copies:  # shared by sampler and features
            self._copies[where] = self.places.to(*where), self.original.to(*where)
        return self._copies[where]

    def own(self, part: int, nodes: Tensor) -> Tensor:
        """Return those of ``nodes`` (original ids ``[n]``) that a part owns, in their order."""
        places = self.places[nodes.long()]
        mine = (places >= self.offsets[part]) & (places < self.offsets[part + 1])
        return nodes[mine]

    def digest(self) -> str:
        """Return a digest, equal for partitions in which every node has the same place."""
        digest = hashlib.blake2b(digest_size=16)
        for tensor in (self.offsets, self.original):
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()


def owner_of(places: Tensor, offsets: Tensor) -> Tensor:
    """Return the owner of each place, int64 ``[n]``; ``offsets`` on the device of ``places``."""
    return torch.searchsorted(offsets[1:], places.long(), right=True)
