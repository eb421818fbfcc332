"""All-to-all and all-reduce over a process group, with rounds and bytes counted."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.measure.named_timers import Spent

MOST = 16  # values of an agreement; a fixed size lets different versions compare them


@dataclass
class Traffic:
    """Counts of a rank's exchanges since the start, by purpose (``sample``, ``features`` ...).

    ``rounds``          all-to-alls of ids, neighbours or rows, as FastSample (section 3.3) counts
    ``sizes``           all-to-alls of one number a peer before a round whose size the receiver
                        does not know; the paper does not count them
    ``reduces``         all-reduces
    ``sent``            bytes to other ranks by the rounds; bytes to the rank itself do not count
    ``received``        bytes from other ranks by the rounds
    ``size_bytes``      bytes to other ranks by ``sizes``
    ``reduced_bytes``   bytes of the all-reduced tensors; the bytes sent depend on the algorithm
    """

    rounds: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    reduces: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    size_bytes: Counter[str] = field(default_factory=Counter)
    reduced_bytes: Counter[str] = field(default_factory=Counter)


class Exchange:
    """The collectives that partitions need, over ``group`` (None: the default process group).

    Every rank must make the same calls in the same order; a group of one makes them too and sends
    nothing. Tensors are on the device of the group's backend: the CPU under Gloo, a GPU under
    NCCL. ``traffic`` counts. ``spent`` has the seconds of rounds and ``sizes`` by purpose,
    including the wait for other ranks; on a GPU by its events. ``place``: (rank, ranks) in a
    default group that is joined later, before the first exchange. ``waiting`` is entered around
    each collective.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        place: tuple[int, int] | None = None,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        if place is None:
            if not dist.is_available() or not dist.is_initialized():
                raise UsageError(
                    "there is no process group; call torch.distributed.init_process_group first"
                )
            place = dist.get_rank(group), dist.get_world_size(group)
        self._group, self._waiting = group, waiting
        self.rank, self.ranks = place
        self.traffic, self.spent = Traffic(), Spent()

    @contextmanager
    def _timed(self, purpose: str, device: torch.device) -> Iterator[None]:
        with self.spent.of(purpose, device), self._waiting():
            yield

    def sizes(self, purpose: str, mine: Tensor) -> list[int]:
        """Send one of ``mine`` (int64 ``[ranks]``) to each rank; returns the one from each rank."""
        theirs = torch.empty_like(mine)
        with self._timed(purpose, mine.device):
            dist.all_to_all_single(theirs, mine, group=self._group)
        self.traffic.sizes[purpose] += 1
        self.traffic.size_bytes[purpose] += (self.ranks - 1) * mine.element_size()
        return theirs.tolist()

    def round(self, purpose: str, send: Tensor, to: Sequence[int], come: Sequence[int]) -> Tensor:
        """One round: rows of ``send`` ``[sum(to), ...]``, ``to[q]`` of them to rank q in order.

        Returns the received rows ``[sum(come), ...]`` by rank, ``come[q]`` rows of rank q.
        """
        got = send.new_empty(sum(come), *send.shape[1:])
        with self._timed(purpose, send.device):
            dist.all_to_all_single(got, send.contiguous(), list(come), list(to), group=self._group)
        size = send.shape[1:].numel() * send.element_size()
        self.traffic.rounds[purpose] += 1
        self.traffic.sent[purpose] += (sum(to) - to[self.rank]) * size
        self.traffic.received[purpose] += (sum(come) - come[self.rank]) * size
        return got

    def sum(self, purpose: str, tensor: Tensor) -> None:
        """Add up a tensor over all ranks, in place."""
        with self._waiting():
            dist.all_reduce(tensor, group=self._group)
        self.traffic.reduces[purpose] += 1
        self.traffic.reduced_bytes[purpose] += tensor.nbytes

    def agree(self, device: torch.device, values: Mapping[str, object]) -> None:
        """Raise ``UsageError`` on every rank unless all ranks have the same values (by ``repr``).

        The error names those that differ. All ranks pass the same names in one order, at most
        ``MOST``.
        """
        ends = torch.zeros(2, MOST, dtype=torch.int64)
        for place, value in enumerate(values.values()):
            text = repr(value).encode()
            digest = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 2
            ends[:, place] = torch.tensor([digest, -digest])
        # One maximum of x and of -x: the second is minus the minimum.
        ends = ends.to(device)
        with self._waiting():
            dist.all_reduce(ends, dist.ReduceOp.MAX, group=self._group)
        self.traffic.reduces["setup"] += 1
        self.traffic.reduced_bytes["setup"] += ends.nbytes
        most, least = ends.tolist()
        if other := [n for n, x, y in zip(values, most, least, strict=False) if x != -y]:
            raise UsageError(
                f"the ranks differ in {' and in '.join(other)}; start all of them with the same"
            )
