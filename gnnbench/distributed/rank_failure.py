"""Finds the cause of a failure of several ranks: one fails, and the others lose their peer."""

from __future__ import annotations

from gnnbench.core import process_activity
from gnnbench.core.errors import GnnbenchError
from gnnbench.core.peer_failure import is_late, is_lost
from gnnbench.distributed.process_exit import death_error
from gnnbench.distributed.rank_monitor import SETTLE_S, RankMonitor
from gnnbench.distributed.rank_processes import RankProcesses


class RankDiedError(GnnbenchError):
    """A rank's process has ended by itself, or hangs."""


def failure_cause(
    error: BaseException, processes: RankProcesses, monitor: RankMonitor, oom_kills_before: int
) -> BaseException:
    """Return why the ranks fail; ``error`` is what rank 0 noticed first.

    A rank's own error comes before a hang, a hang before a rank that has ended, and that before
    errors of the connection to another rank.
    """
    if not is_lost(error):
        return error
    loss = monitor.loss
    hang = loss.hang if loss is not None else ""
    errors, ended = processes.drain(0.0 if hang else SETTLE_S, lambda cause: not is_lost(cause))
    if errors and not is_lost(errors[-1]):
        return errors[-1]
    if hang:
        return RankDiedError(f"{hang}; run again")
    killed = monitor.killed or set()
    if died := [rank for rank in ended if rank not in killed]:
        rank, advice = min(died), "run with --only-failed"
        return death_error(
            processes.processes[rank - 1], SETTLE_S, oom_kills_before, f"rank {rank}",
            lambda how: RankDiedError(f"the process of rank {rank} died {how}; {advice}"),
        )  # fmt: skip
    if any(map(is_late, [error, *errors])):
        return RankDiedError(
            f"a rank did not come to the others within {process_activity.SILENCE_S:g} s: it"
            " hangs; run again"
        )
    return error
