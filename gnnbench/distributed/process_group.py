"""The ranks as one process group of torch's: joining, broadcasting and all-reducing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.core import process_activity
from gnnbench.core.counters import REDUCE_BYTES, REDUCE_TIME, Counts
from gnnbench.core.heartbeat import Pulse
from gnnbench.distributed.gradients import FlatReduce, OverlappedReduce
from gnnbench.measure.named_timers import Spent

LOOPBACK = "lo"
MARGIN_S = 2.0  # after the rank monitor's limit, so that the monitor names the hanging rank first
SHARING = "GNNBENCH_RANKS_SHARE_GPUS"
INTERFACES = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}  # by backend


def share_gpus() -> bool:
    """Whether ranks may share a GPU (``GNNBENCH_RANKS_SHARE_GPUS=1``), for tests on one GPU.

    NCCL refuses that. Ranks then use Gloo, through the host, so their times have no meaning.
    """
    return os.environ.get(SHARING) == "1"


@dataclass
class RankGroup:
    """The ranks of a process; a process has one group.

    ``teams`` are sizes of subgroups that may work without the others, always the first ranks.

    The backend is NCCL if batches are on GPUs, else Gloo, over the loopback interface. A Gloo
    collective raises soon after ``SILENCE_S`` if another rank does not take part, and at once if
    another rank's process ends. A NCCL collective does not block the host: whoever waits for the
    GPU must monitor the other ranks (``gnnbench.distributed.rank_monitor``) and call ``abort``.
    """

    rank: int
    ranks: int
    device: torch.device
    counts: Counts
    pulse: Pulse
    teams: tuple[int, ...] = ()
    gradients: FlatReduce | OverlappedReduce = field(init=False)
    aborted: bool = field(default=False, init=False)
    _team: dist.ProcessGroup | None = field(default=None, init=False)  # None: all ranks
    _teams: dict[int, dist.ProcessGroup] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._size = self.ranks
        self._abort_lock = threading.Lock()
        self._reduce_times = Spent()
        self.gradients = FlatReduce(self)
        self.counts.settled_by(self._settle)

    def join(self, store: dist.Store) -> None:
        """Join the group at a store of torch's; all ranks have joined on return."""
        on_gpu = self.device.type == "cuda"
        timeout = timedelta(seconds=process_activity.SILENCE_S + MARGIN_S)
        nccl = on_gpu and not share_gpus()
        backend = "nccl" if nccl else "gloo"
        if nccl:  # else torch ends this process when another rank ends
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
        with _loopback(INTERFACES[backend]), self.pulse.waiting():
            dist.init_process_group(
                backend, store=dist.PrefixStore("group", store), rank=self.rank,
                world_size=self.ranks, timeout=timeout,
            )  # fmt: skip
            for size in self.teams:
                self._teams[size] = dist.new_group(list(range(size)), timeout=timeout)
            dist.barrier(device_ids=[self.device.index or 0] if nccl else None)

    def use_team(self, size: int) -> None:
        """Use the team of the first ``size`` ranks, this one among them; 1: this rank alone."""
        self._size, self._team = size, self._teams.get(size)

    @torch.no_grad()
    def broadcast_state(self, state: Sequence[Tensor]) -> None:
        """Overwrite ``state`` (weights and optimizer) on all ranks with rank 0's."""
        if self._size == 1:
            return
        flat = torch.cat([t.flatten().to(self.device, torch.float32) for t in state])
        with self.pulse.waiting():
            dist.broadcast(flat, 0, group=self._team)
        for own, new in zip(state, flat.split([t.numel() for t in state]), strict=True):
            own.copy_(new.view_as(own))

    def least(self, number: int) -> int:
        """Return the least ``number`` of all ranks."""
        numbers = torch.tensor([number], device=self.device)
        with self.pulse.waiting():
            dist.all_reduce(numbers, dist.ReduceOp.MIN)
            return int(numbers)

    def broadcast(self, tensor: Tensor) -> Tensor:
        """Overwrite ``tensor`` on all ranks with rank 0's, and return it."""
        with self.pulse.waiting():
            dist.broadcast(tensor, 0)
        return tensor

    @torch.no_grad()
    def all_reduce(self, parameters: Sequence[Tensor], loss: Tensor, labelled: Tensor) -> Tensor:
        """Replace a rank's gradients by the whole batch's; returns the batch's mean loss.

        ``loss`` is the mean over the rank's ``labelled`` seeds (both scalars). One all-reduce sums
        gradients, loss and that number. A rank's values weigh as many seeds as it has, so a rank
        without seeds adds nothing. If no seed has a label, gradients are 0 and the loss is NaN, as
        in one process.
        """
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([*(part.flatten() for part in parts), loss.view(1), loss.new_ones(1)])
        flat = torch.where(labelled > 0, flat * labelled, 0.0)
        with self.timed_reduce():
            dist.all_reduce(flat, group=self._team)
        means = flat[:-2] / flat[-1].clamp(min=1)
        sizes = [p.numel() for p in parameters]
        for own, mean in zip(parameters, means.split(sizes), strict=True):
            own.grad = mean.view_as(own)
        self.counts.add("schedule", REDUCE_BYTES, flat.nbytes, "")
        return flat[-2] / flat[-1]

    @contextmanager
    def timed_reduce(self) -> Iterator[None]:
        """Time an all-reduce, including the wait for other ranks."""
        end = self.begin_reduce()
        try:
            yield
        finally:
            end()

    def begin_reduce(self) -> Callable[[], None]:
        """Start timing an asynchronous all-reduce; call the result at its end, on any thread."""
        stop_timer, waiting = self._reduce_times.begin("reduce", self.device), self.pulse.waiting()
        waiting.__enter__()

        def end() -> None:
            stop_timer()
            waiting.__exit__(None, None, None)

        return end

    def _settle(self) -> None:
        """Count the times of all-reduces, which are read from the device only now."""
        for seconds in self._reduce_times.take().values():
            self.counts.add("schedule", REDUCE_TIME, seconds, str(self.rank))

    def abort(self) -> None:
        """Abort collectives that wait on a GPU for other ranks; the group is unusable after."""
        with self._abort_lock:
            if self.aborted:
                return
            self.aborted = True
            for group in [dist.group.WORLD, *self._teams.values()]:
                with suppress(Exception):  # it does not exist yet, or lacks this rank
                    assert group is not None
                    group.abort()

    def close(self) -> None:
        """Leave the group. On GPUs, nothing waits for ranks that have ended."""
        if not dist.is_initialized():
            return
        if self.device.type != "cuda":
            dist.destroy_process_group()
            return
        self.abort()
        with suppress(Exception):
            dist.destroy_process_group()


class TrainerTeam(RankGroup):
    """The ranks that train in a step, always the first ones; a loss is that of a rank's batch."""

    def all_reduce(self, parameters: Sequence[Tensor], loss: Tensor, labelled: Tensor) -> Tensor:
        """Replace a rank's gradients by those of all members' batches; returns ``loss``."""
        super().all_reduce(parameters, loss, labelled)
        return loss


@contextmanager
def _loopback(variable: str) -> Iterator[None]:
    """Set an environment variable so that ranks of one host listen on no other interface."""
    before = os.environ.get(variable)
    os.environ[variable] = LOOPBACK
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
