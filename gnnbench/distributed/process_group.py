"""The ranks as one process group of torch's: they meet, and add up what each of them has."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.core import process_activity
from gnnbench.core.counters import REDUCE_BYTES, REDUCE_TIME, Counts
from gnnbench.core.heartbeat import Pulse
from gnnbench.distributed.gradients import Flat, Overlapped
from gnnbench.measure.named_timers import Spent

LOOPBACK = "lo"
MORE_S = 2.0
SHARING = "GNNBENCH_RANKS_SHARE_GPUS"
INTERFACES = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}  # by backend


def share_gpus() -> bool:
    """Whether ranks may share a GPU (``GNNBENCH_RANKS_SHARE_GPUS=1``), which NCCL refuses: by Gloo
    then, through the host. What ranks do is tried so where one GPU is all there is; times tell
    nothing."""
    return os.environ.get(SHARING) == "1"


@dataclass
class Group:
    """The ranks, which ``meet``; one group a process.

    ``teams``: numbers of ranks, always the first ones, that may be asked to work by themselves.

    NCCL where batches are on GPUs, else Gloo, over the loopback interface. A collective of Gloo
    that others do not come to raises soon after ``SILENCE_S``, and at once where one of them has
    ended. One of NCCL is begun by a host that goes on: whoever waits for the GPU has to watch the
    others, and to ``abort`` (``gnnbench.distributed.watch``).
    """

    rank: int
    ranks: int
    device: torch.device
    counts: Counts
    pulse: Pulse
    teams: tuple[int, ...] = ()
    place: str = field(init=False)
    gradients: Flat | Overlapped = field(init=False)
    aborted: bool = field(default=False, init=False)
    _team: Any = field(default=None, init=False)  # None: all ranks
    _teams: dict[int, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.place, self._size = str(self.rank), self.ranks
        self._aborting = threading.Lock()
        self._spent = Spent()
        self.gradients = Flat(self)
        self.counts.settled_by(self._settle)

    def meet(self, store: Any) -> None:
        """Meet at a store of torch's; all are there on return."""
        on_gpu = self.device.type == "cuda"
        # Gloo's; the watch of rank 0 is to say first who hangs.
        patience = timedelta(seconds=process_activity.SILENCE_S + MORE_S)
        nccl = on_gpu and not share_gpus()
        backend = "nccl" if nccl else "gloo"
        if nccl:  # else torch ends the process where another rank does
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
        with _loopback(INTERFACES[backend]), self.pulse.waiting():
            dist.init_process_group(
                backend, store=dist.PrefixStore("group", store), rank=self.rank,
                world_size=self.ranks, timeout=patience,
            )  # fmt: skip
            for size in self.teams:
                self._teams[size] = dist.new_group(list(range(size)), timeout=patience)
            dist.barrier(device_ids=[self.device.index or 0] if nccl else None)

    def enter(self, size: int) -> None:
        """From now on work as the team of the first ``size`` ranks, this one among them; 1: by
        itself."""
        self._size, self._team = size, self._teams.get(size)

    @torch.no_grad()
    def share_state(self, state: Sequence[Tensor]) -> None:
        """Give all ranks the first one's weights and optimizer, in place: one broadcast."""
        if self._size == 1:
            return
        flat = torch.cat([t.flatten().to(self.device, torch.float32) for t in state])
        with self.pulse.waiting():
            dist.broadcast(flat, 0, group=self._team)
        for own, new in zip(state, flat.split([t.numel() for t in state]), strict=True):
            own.copy_(new.view_as(own))

    @torch.no_grad()
    def average(self, parameters: Sequence[Tensor], loss: Tensor, labelled: Tensor) -> Tensor:
        """Put the gradients of the whole batch in place of a rank's; returns its mean loss.

        ``loss`` is the mean over the rank's ``labelled`` seeds (scalars). One all-reduce of all
        gradients, the loss and that number: each rank's weighs as many seeds as it has, so that a
        rank without seeds adds nothing. Where no seed has a label gradients are 0 and the loss is
        NaN, as one process has them.
        """
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([*(part.flatten() for part in parts), loss.view(1), loss.new_ones(1)])
        flat = torch.where(labelled > 0, flat * labelled, 0.0)
        with self.reducing():
            dist.all_reduce(flat, group=self._team)
        means = flat[:-2] / flat[-1].clamp(min=1)
        sizes = [p.numel() for p in parameters]
        for own, mean in zip(parameters, means.split(sizes), strict=True):
            own.grad = mean.view_as(own)
        self.counts.add("schedule", REDUCE_BYTES, flat.nbytes, "")
        return flat[-2] / flat[-1]

    @contextmanager
    def reducing(self) -> Iterator[None]:
        """Around an all-reduce: its time is told, waiting for the others in it."""
        over = self.began_to_reduce()
        try:
            yield
        finally:
            over()

    def began_to_reduce(self) -> Callable[[], None]:
        """The same of one that goes on beside other work; what is returned is called at its end, by
        any thread."""
        over, waiting = self._spent.begin("reduce", self.device), self.pulse.waiting()
        waiting.__enter__()

        def done() -> None:
            over()
            waiting.__exit__(None, None, None)

        return done

    def _settle(self) -> None:
        """Tell the times of all-reduces, for which nobody has waited before."""
        for took in self._spent.take().values():
            self.counts.add("schedule", REDUCE_TIME, took, self.place)

    def abort(self) -> None:
        """End what waits on a GPU for ranks that do not come; the group is of no use afterwards."""
        with self._aborting:
            if self.aborted:
                return
            self.aborted = True
            groups: list[Any] = [dist.group.WORLD, *self._teams.values()]
            for group in groups:
                with suppress(Exception):  # it is not there yet, or has not this rank
                    group.abort()

    def close(self) -> None:
        """Leave the group. On GPUs nobody waits for ranks that have ended before."""
        if not dist.is_initialized():
            return
        if self.device.type != "cuda":
            dist.destroy_process_group()
            return
        self.abort()
        with suppress(Exception):
            dist.destroy_process_group()


@contextmanager
def _loopback(variable: str) -> Iterator[None]:
    """The environment with a variable that says so: ranks of one host listen on nothing else."""
    asked = os.environ.get(variable)
    os.environ[variable] = LOOPBACK
    try:
        yield
    finally:
        if asked is None:
            del os.environ[variable]
        else:
            os.environ[variable] = asked
