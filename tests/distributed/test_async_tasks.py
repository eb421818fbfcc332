"""The task queue of asynchronous updates, without processes."""

import random

import pytest

from gnnbench.distributed.async_tasks import AsyncTaskQueue
from gnnbench.distributed.tasks import NO_SHARE_LEFT, TrainingPace


def queue(batches, trainers, staleness, sampled=True, standby=False, profit="all-batches"):
    """Return a queue with one sampler that has sampled all batches."""
    pace = TrainingPace()
    tasks = AsyncTaskQueue(
        batches, 64, [trainers], range(trainers), staleness, standby, pace, profit
    )
    for batch in range(batches if sampled else 0):
        tasks.fill(batch, f"batch {batch}")
    return tasks


def assigned(tasks):
    """Return rank, batch and members of the shares that are given out now."""
    return [
        (rank, "over" if d is NO_SHARE_LEFT else (d.batch, d.step.members))
        for rank, d in tasks.assigned_shares(0.0)
    ]


def test_each_batch_is_a_step_of_the_rank_that_asks_first():
    tasks = queue(3, 2, staleness=4)
    for rank in (1, 0, 1):
        tasks.request_share(rank, 0.0)
        number = len(tasks.steps)
        assert assigned(tasks) == [(rank, (number, (rank,)))]
    assert [list(step.batches) for step in tasks.steps] == [[0], [1], [2]]


def test_ranks_take_the_oldest_batch_that_is_sampled():
    tasks = queue(3, 1, staleness=4, sampled=False)
    tasks.request_share(0, 0.0)
    assert assigned(tasks) == []
    tasks.fill(2, "late")
    assert assigned(tasks) == [(0, (2, (0,)))]
    tasks.fill(1, "late")
    tasks.fill(0, "late")
    tasks.request_share(0, 0.0)
    assert assigned(tasks) == [(0, (0, (0,)))]


@pytest.mark.parametrize("staleness", [1, 3])
def test_a_rank_waits_for_the_slowest_one(staleness):
    """Rank 0 gets its batch ``staleness + 1`` when rank 1 has finished its first."""
    tasks = queue(9, 2, staleness)
    tasks.request_share(1, 0.0)
    assert len(assigned(tasks)) == 1
    for _ in range(staleness):
        tasks.request_share(0, 0.0)
        assert len(assigned(tasks)) == 1
        tasks.finish(0)
    tasks.request_share(0, 0.0)
    assert assigned(tasks) == []
    tasks.finish(1)
    assert [rank for rank, _ in assigned(tasks)] == [0]


@pytest.mark.parametrize("staleness", [1, 2, 5])
def test_a_gradient_lacks_at_most_twice_the_staleness(staleness):
    """Rank 0 reads weights before rank 1 has begun, and rank 1 then goes as far as it may."""

    def train(rank):
        tasks.request_share(rank, 0.0)
        given = assigned(tasks)
        tasks.finish(rank)
        return len(given)

    tasks = queue(9 * staleness, 2, staleness)
    tasks.request_share(1, 0.0)
    assert len(assigned(tasks)) == 1
    assert [train(0) for _ in range(staleness)] == [1] * staleness  # the last one reads weights
    tasks.finish(1)
    tasks.request_share(0, 0.0)
    assert len(assigned(tasks)) == 1
    lacks = 1
    tasks.request_share(1, 0.0)
    while assigned(tasks):
        tasks.finish(1)
        lacks += 1
        tasks.request_share(1, 0.0)
    assert lacks == 2 * staleness


def test_the_epoch_ends_for_all_ranks_after_the_last_update():
    tasks = queue(2, 2, staleness=2)
    for rank in (0, 1):
        tasks.request_share(rank, 0.0)
    assert len(assigned(tasks)) == 2
    tasks.finish(0)
    tasks.request_share(0, 0.0)
    assert assigned(tasks) == []
    tasks.finish(1)
    assert assigned(tasks) == [(0, "over")]
    tasks.request_share(1, 0.0)
    assert assigned(tasks) == [(1, "over")]


@pytest.mark.parametrize(
    ("profit", "left", "takes"),
    [("published", 2, True), ("published", 1, False), ("all-batches", 3, True)],
)
def test_profit_is_computed_when_a_standby_trainer_asks(profit, left, takes):
    """M_r T_t / N_t - T_t > 0 with one trainer: more than one batch is left in the queue."""
    tasks = queue(4, 1, staleness=9, standby=True, profit=profit)
    for _ in range(4 - left):
        tasks.request_share(0, 0.0)
        assert len(assigned(tasks)) == 1
    tasks.request_share(1, 0.0)
    assert bool(assigned(tasks)) is takes
    assert tasks.switched == takes


def test_a_standby_trainer_begins_behind_the_slowest_rank_and_does_not_block_others_when_idle():
    tasks = queue(20, 1, staleness=2, standby=True)
    for _ in range(5):
        tasks.request_share(0, 0.0)
        assert len(assigned(tasks)) == 1
        tasks.finish(0)
    tasks.request_share(1, 0.0)  # its batch 6 of rank 0's 5
    assert assigned(tasks) == [(1, (5, (1,)))]
    for waits in (False, False, True):  # for rank 1's batch 6
        tasks.request_share(0, 0.0)
        assert (assigned(tasks) == []) is waits
        if not waits:
            tasks.finish(0)
    tasks.finish(1)
    assert len(assigned(tasks)) == 1
    tasks.pace.note(True, 1e9)  # no further batch is worth its while
    tasks.request_share(1, 0.0)
    for _ in range(5):
        tasks.finish(0)
        tasks.request_share(0, 0.0)
        assert [rank for rank, _ in assigned(tasks)] == [0]
    for _ in range(9):
        tasks.pace.note(False, 1e12)  # now it is, and it counts on from rank 0's batches
    tasks.finish(0)
    assert [rank for rank, _ in assigned(tasks)] == [1]
    tasks.request_share(0, 0.0)
    assert [rank for rank, _ in assigned(tasks)] == [0]
    assert tasks.switched == 1


@pytest.mark.parametrize("seed", range(20))
def test_random_paces_never_exceed_the_bound_and_end(seed):
    draws = random.Random(seed)
    trainers, staleness, batches = draws.randint(1, 4), draws.randint(1, 4), draws.randint(1, 40)
    tasks = queue(batches, trainers, staleness, sampled=False)
    received, finished = [0] * trainers, [0] * trainers
    waiting, ended, taken = set(), set(), []
    unsampled = list(range(batches))
    while len(ended) < trainers:
        idle = [r for r in range(trainers) if r not in waiting | ended]
        busy = [r for r in range(trainers) if received[r] > finished[r]]
        assert idle or busy or unsampled  # else the ranks wait for each other
        kind = draws.choice(
            ["ask"] * bool(idle) + ["end"] * bool(busy) + ["fill"] * bool(unsampled)
        )
        if kind == "ask":
            rank = draws.choice(idle)
            if received[rank] - finished[rank] < 2:  # one trains and one is fetched
                tasks.request_share(rank, 0.0)
                waiting.add(rank)
            elif busy:
                kind = "end"
        if kind == "end":
            rank = draws.choice(busy)
            finished[rank] += 1
            tasks.finish(rank)
        elif kind == "fill":
            tasks.fill(unsampled.pop(0), "batch")
        for rank, share in assigned(tasks):
            waiting.discard(rank)
            if share == "over":
                ended.add(rank)
                continue
            received[rank] += 1
            taken.append(share[0])
            others = [done for r, done in enumerate(finished) if r != rank]
            assert all(done >= received[rank] - staleness for done in others)
    assert sorted(taken) == list(range(batches))
