"""The rank monitor: which rank counts as lost, and after how long."""

import subprocess
import time
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from gnnbench.core import heartbeat, process_activity
from gnnbench.core.heartbeat import RESTS, RUNS, WORKS, Board, Pulse
from gnnbench.core.peer_failure import LostError
from gnnbench.distributed import process_group, rank_failure, rank_monitor, rank_session
from gnnbench.distributed.producer_messages import send
from gnnbench.distributed.rank_failure import RankDiedError, failure_cause
from gnnbench.distributed.rank_monitor import RankLoss, RankMonitor
from gnnbench.distributed.rank_processes import RankProcesses
from gnnbench.distributed.remote_failure import RemoteFailure
from gnnbench.harness.process import CLOSE_TIMEOUT_S

CLOSED = RuntimeError("[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:7")
PROMISED_S = 60.0


def test_hang_is_reported_within_a_minute_of_the_last_progress():
    seen = (
        process_activity.SILENCE_S
        + max(heartbeat.TICK_S + rank_monitor.LOOK_S, process_group.MARGIN_S)
        + rank_monitor.SETTLE_S
    )
    # Rank 0 reads the other ranks' errors and exit codes and ends them; or it is killed itself.
    handling_s = max(2 * rank_monitor.SETTLE_S, rank_monitor.GRACE_S + 2 * rank_monitor.SETTLE_S)
    assert process_activity.SILENCE_S == 45.0
    assert seen + handling_s < PROMISED_S
    assert rank_session.END_S < CLOSE_TIMEOUT_S  # a closing worker is not killed


class Process:
    """A process that runs until it is killed."""

    pid = 0

    def __init__(self):
        self.code = None

    def poll(self):
        return self.code

    def kill(self):
        self.code = -9 if self.code is None else self.code


@pytest.fixture
def watched(monkeypatch):
    """A monitor of three ranks, their heartbeats, and recorded calls."""
    monkeypatch.setattr(process_activity, "SILENCE_S", 10.0)
    board = Board(3)
    lines = [Pulse(board, rank) for rank in range(3)]
    calls = SimpleNamespace(lost=[], stuck=[], signs=[(0.0, 0.0)] * 3)
    monitor = RankMonitor(
        board, lines[0], [Process(), Process()],
        on_loss=calls.lost.append, on_stuck=lambda: calls.stuck.append(time.monotonic()),
    )  # fmt: skip
    monitor._activity = [SimpleNamespace(look=lambda r=r: calls.signs[r]) for r in range(3)]
    yield monitor, lines, calls
    board.close()


def back(line, seconds):
    """Move the last progress of a rank into the past."""
    line._board.put(line._rank, heartbeat._MOVED, line._board.moved(line._rank) - seconds)


def test_idle_rank_that_others_may_wait_for_is_lost(watched):
    monitor, lines, _ = watched
    assert monitor.hanging_rank() is None  # all are idle
    for line in lines:
        line.now(RUNS)
    back(lines[2], 9.0)
    assert monitor.hanging_rank() is None
    back(lines[2], 2.0)
    back(lines[1], 10.5)  # also too long ago, and later than rank 2
    assert monitor.hanging_rank() == RankLoss(2, "rank 2 did nothing for 10 s: it hangs")


def test_waiting_rank_is_not_lost(watched):
    monitor, lines, _ = watched
    for line in lines:
        line.now(RUNS)
    back(lines[1], 20.0)
    with lines[1].waiting():
        assert monitor.hanging_rank() is None
        back(lines[0], 11.0)
        assert monitor.hanging_rank().rank == 0
    assert monitor.hanging_rank().rank == 0


def test_ranks_that_all_wait_for_each_other_are_lost(watched, monkeypatch):
    monitor, lines, _ = watched
    now = [1000.0]
    monkeypatch.setattr(rank_monitor.time, "monotonic", lambda: now[0])
    lines[1].now(WORKS)
    lines[2].now(RUNS)
    with lines[1].waiting(), lines[2].waiting():
        assert monitor.hanging_rank() is None
        now[0] += 11.0
        assert "wait for each other" in monitor.hanging_rank().hang
    lines[1].now(WORKS)
    assert monitor.hanging_rank() is None


def test_long_work_is_detected_by_kernel_counters(watched):
    monitor, lines, calls = watched
    lines[1].now(WORKS)
    back(lines[1], 1000.0)
    assert monitor.hanging_rank() is None  # it computes
    calls.signs[1] = (10.5, 0.0)
    assert monitor.hanging_rank() == RankLoss(1, "rank 1 did nothing for 10 s: it hangs")
    lines[1].now(RESTS)
    assert monitor.hanging_rank() is None


def test_stopped_rank_is_lost_in_any_state(watched):
    monitor, _, calls = watched
    calls.signs[2] = (11.0, 11.0)
    assert monitor.hanging_rank() == RankLoss(2, "rank 2 was stopped for 10 s: it hangs")


@pytest.mark.parametrize("comes", [True, False])
def test_monitor_kills_all_ranks_and_an_unresponsive_rank_0(watched, monkeypatch, comes):
    monkeypatch.setattr(rank_monitor, "SETTLE_S", 0.1)
    monkeypatch.setattr(rank_monitor, "GRACE_S", 0.1)
    monitor, _, calls = watched
    one, other = monitor._processes
    one.code = 3
    if comes:
        monitor.end()
        monitor._ended.clear()
        monkeypatch.setattr(rank_monitor, "GRACE_S", 30.0)
        monitor._on_loss = lambda loss: (calls.lost.append(loss), monitor._ended.set())
    monitor._run()
    assert calls.lost == [RankLoss(1, "")] and monitor.loss == RankLoss(1, "")
    assert bool(calls.stuck) == (not comes)
    assert other.code == (None if comes else -9)  # a responsive rank 0 ends the others itself
    assert monitor.killed == (None if comes else {2})


ENDS = []  # references that keep pipes open


def cause_of(*messages, loss=None, killed=None, codes=()):
    """The cause of a failure from the messages of each rank; None: its process has ended."""
    made, ends = RankProcesses(len(messages) + 1, None), [Pipe() for _ in messages]
    ENDS.extend(ends)
    ended = [SimpleNamespace(wait=lambda t=None, c=c: c, kill=lambda: None) for c in codes]
    made.processes += ended
    made.connections += [ours for ours, _ in ends]
    monitor = SimpleNamespace(loss=loss, killed=killed)
    for message, (_, theirs) in zip(messages, ends, strict=True):
        if isinstance(message, BaseException):
            send(theirs, RemoteFailure.by(message))
        elif message is None:
            theirs.close()
    return lambda error: failure_cause(error, made, monitor, 1 << 60)


def test_error_of_a_rank_precedes_lost_peers():
    memory = RuntimeError("can't allocate memory: you tried 8 bytes, said gloo/")
    assert "can't allocate memory" in str(cause_of(CLOSED, memory)(CLOSED))
    assert isinstance(
        cause_of(LostError("rank 2 has failed"), MemoryError("8"))(CLOSED), MemoryError
    )
    own = MemoryError("mine")
    assert cause_of(ValueError("theirs"))(own) is own
    assert cause_of(CLOSED, CLOSED)(CLOSED) is CLOSED  # no other information


def test_ended_or_hanging_rank_is_named(monkeypatch):
    monkeypatch.setattr(rank_failure, "SETTLE_S", 0.1)
    died = cause_of(CLOSED, None, codes=(0, -9))(CLOSED)
    assert isinstance(died, RankDiedError) and "rank 2 died by SIGKILL" in str(died)
    # Both were killed by the monitor, one of them after the other had ended.
    died = cause_of(None, None, loss=RankLoss(2, ""), killed={1}, codes=(-9, 1))(CLOSED)
    assert "rank 2 died with code 1" in str(died)
    hangs = cause_of("", "", loss=RankLoss(1, "rank 1 did nothing for 45 s: it hangs"))(CLOSED)
    assert str(hangs) == "rank 1 did nothing for 45 s: it hangs; run again"
    late = RuntimeError("[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 45000ms")
    assert "did not come to the others within 45 s: it hangs" in str(cause_of("", late)(CLOSED))


def test_all_ranks_together_have_one_time_to_end():
    made = RankProcesses(5, None)
    sleeps = [subprocess.Popen(["sleep", "60"]) for _ in range(4)]
    made.processes += sleeps
    began = time.monotonic()
    made.end(0.5)
    assert 0.5 <= time.monotonic() - began < 60
    assert all(process.returncode == -9 for process in sleeps)
