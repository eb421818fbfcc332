"""The task queue of samplers and trainers, without processes."""

from gnnbench.distributed.tasks import NO_SHARE_LEFT, TaskQueue, TrainingPace


def as_tuples(shares):
    """Return each rank's share as (step, members, batch)."""
    return [
        (rank, "over" if d is NO_SHARE_LEFT else (d.step.number, d.step.members, d.batch))
        for rank, d in shares
    ]


def drawn(tasks, rank, batch):
    """The rank samples a batch that gets its slot at once."""
    tasks.request_slot(rank, batch)
    assert [(r, b) for r, b, _ in tasks.granted_slots()] == [(rank, batch)]
    tasks.fill(batch, f"batch {batch}")


def test_samplers_receive_batches_in_order_of_their_requests():
    tasks = TaskQueue(3, 2, samplers=[1, 2], trainers=[0])
    assert [tasks.next_batch() for _ in range(5)] == [0, 1, 2, None, None]


def test_batch_gets_its_slot_after_the_previous_one_left():
    tasks = TaskQueue(6, 2, samplers=[1, 2], trainers=[0])
    for batch, rank in ((3, 1), (1, 2)):
        tasks.request_slot(rank, batch)
    assert tasks.granted_slots() == [(2, 1, 1)]  # 3 needs the same slot afterwards
    tasks.fill(1, "b1")
    tasks.request_slot(2, 0)
    assert tasks.granted_slots() == [(2, 0, 0)]
    tasks.release(0)
    assert tasks.granted_slots() == []
    tasks.release(1)
    assert tasks.granted_slots() == [(1, 3, 1)]


def test_slot_is_reserved_for_a_batch_being_sampled():
    tasks = TaskQueue(2, 1, samplers=[1, 2], trainers=[0])
    tasks.request_slot(2, 1)
    assert tasks.granted_slots() == []
    drawn(tasks, 1, 0)
    assert tasks.granted_slots() == []
    tasks.release(0)
    assert tasks.granted_slots() == [(2, 1, 0)]


def test_a_step_has_one_batch_for_each_requesting_trainer():
    tasks = TaskQueue(5, 8, samplers=[2], trainers=[0, 1])
    tasks.request_share(1, 0.0)
    assert tasks.assigned_shares(0.0) == []  # nothing is sampled
    for batch in range(5):
        drawn(tasks, 2, batch)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(1, (0, (0, 1), 0))]
    tasks.request_share(1, 0.0)  # ahead of the other, in the next step
    assert as_tuples(tasks.assigned_shares(0.0)) == [(1, (1, (0, 1), 2))]
    tasks.request_share(0, 0.0)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(0, (0, (0, 1), 1))]
    tasks.request_share(0, 0.0)
    tasks.request_share(0, 0.0)
    tasks.request_share(1, 0.0)
    # The last step has one batch: the last requesting trainer takes part without a batch.
    assert as_tuples(tasks.assigned_shares(0.0)) == [
        (0, (1, (0, 1), 3)), (0, (2, (0, 1), 4)), (1, (2, (0, 1), None)),
    ]  # fmt: skip
    tasks.request_share(0, 0.0)
    tasks.request_share(1, 0.0)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(0, "over"), (1, "over")]
    assert [list(s.batches) for s in tasks.steps] == [[0, 1], [2, 3], [4]]


def test_late_batch_is_overtaken_within_its_step_only():
    tasks = TaskQueue(4, 4, samplers=[2, 3], trainers=[0, 1])
    drawn(tasks, 3, 1)
    drawn(tasks, 3, 2)
    tasks.request_share(0, 0.0)
    tasks.request_share(1, 0.0)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(0, (0, (0, 1), 1))]  # 2 is of the next step
    drawn(tasks, 2, 0)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(1, (0, (0, 1), 0))]


def standing_by(batches, pace=None):
    """One trainer, and one sampler that has finished sampling and can train."""
    tasks = TaskQueue(batches, 16, samplers=[1], trainers=[0], standby=True, pace=pace)
    for batch in range(batches):
        drawn(tasks, 1, batch)
    tasks.request_share(1, 0.0)
    return tasks


def test_standby_sampler_joins_if_there_is_profit():
    tasks = standing_by(4)
    assert tasks.assigned_shares(0.0) == []  # trainers form steps
    tasks.request_share(0, 0.0)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(0, (0, (0, 1), 0)), (1, (0, (0, 1), 1))]
    assert tasks.steps[0].joins and tasks.switched == 1
    tasks.request_share(0, 1.0)
    tasks.request_share(1, 3.0)
    assert tasks.pace.times() == (1.0, 3.0)
    # Two batches are left: 2 * 1 / 1 - 3 is a loss, so the trainer continues alone.
    assert as_tuples(tasks.assigned_shares(3.0)) == [(0, (1, (0,), 2))]
    tasks.request_share(0, 4.0)
    assert as_tuples(tasks.assigned_shares(4.0)) == [(0, (2, (0,), 3)), (1, "over")]
    assert not tasks.steps[1].joins
    tasks.request_share(0, 5.0)
    assert as_tuples(tasks.assigned_shares(5.0)) == [(0, "over")]


def test_a_standby_trainer_as_fast_as_the_other_stays_and_joins_once():
    tasks = standing_by(4)
    tasks.request_share(0, 0.0)
    tasks.assigned_shares(0.0)
    tasks.request_share(0, 1.0)
    # The sampler is still in its step, and also takes part in the next one.
    assert as_tuples(tasks.assigned_shares(1.0)) == [(0, (1, (0, 1), 2))]
    tasks.request_share(1, 1.0)
    assert as_tuples(tasks.assigned_shares(1.0)) == [(1, (1, (0, 1), 3))]
    assert [s.joins for s in tasks.steps] == [True, False] and tasks.switched == 1


def several_standing_by(batches, profit, trainers=2, standbys=3, unsampled=0, pace=None):
    """Trainers 0, 1 ..., and samplers that have nothing left to sample and can train; the last of
    ``batches`` are not in the queue yet.
    """
    samplers = range(trainers, trainers + standbys)
    tasks = TaskQueue(batches, 64, samplers, range(trainers), True, pace, profit)
    for batch in range(batches - unsampled):
        drawn(tasks, samplers[0], batch)
    for rank in samplers:
        tasks.request_share(rank, 0.0)
    tasks.request_share(0, 0.0)
    tasks.assigned_shares(0.0)
    return tasks


def pace_of(trainer_s, standby_s):
    pace = TrainingPace()
    pace.note(False, trainer_s)
    pace.note(True, standby_s)
    return pace


def train_all(tasks, ranks, batch_s):
    """All ranks train until the epoch is over; each batch takes ``batch_s``."""
    now, over, waiting = 0.0, set(), set(range(ranks)) & set(tasks._share_requests)
    while len(over) < ranks:
        now += batch_s
        for rank in set(range(ranks)) - over - waiting:
            tasks.request_share(rank, now)
            waiting.add(rank)
        for rank, share in tasks.assigned_shares(now):
            waiting.remove(rank)
            if share is NO_SHARE_LEFT:
                over.add(rank)


def test_published_profit_counts_trainers_and_not_standby_trainers():
    """12 batches, 2 trainers of 1 s, standby trainers of 4 s: 12 / 2 - 4, 11 / 2 - 4 and 10 / 2 - 4
    are above 0, so all three wake; by all ranks that train, 12 / 3 - 4 is 0 for the second."""
    published = several_standing_by(12, "published", pace=pace_of(1.0, 4.0))
    assert published.steps[0].members == (0, 1, 2, 3, 4) and published.switched == 3
    ours = several_standing_by(12, "all-batches", pace=pace_of(1.0, 4.0))
    assert ours.steps[0].members == (0, 1, 2) and ours.switched == 1


def test_published_profit_falls_with_each_batch_that_a_standby_trainer_takes():
    """With one T_t the profit is above 0 where more batches are left than there are Trainers."""
    members = {
        batches: several_standing_by(batches, "published").steps[0].members
        for batches in range(1, 8)
    }
    assert members == {
        1: (0, 1), 2: (0, 1), 3: (0, 1, 2), 4: (0, 1, 2, 3),
        5: (0, 1, 2, 3, 4), 6: (0, 1, 2, 3, 4), 7: (0, 1, 2, 3, 4),
    }  # fmt: skip


def test_published_profit_counts_batches_in_the_queue():
    """Five of eight batches are not sampled: with three in the queue one standby trainer wakes."""
    published = several_standing_by(8, "published", unsampled=5)
    assert published.steps[0].members == (0, 1, 2)
    ours = several_standing_by(8, "all-batches", unsampled=5)
    assert ours.steps[0].members == (0, 1, 2, 3, 4)


def test_published_profit_of_the_papers_pinsage():
    """Fig. 17a: one sampler, T_t = 9.9 T_s (Table 5). It wakes while more batches are in the queue
    than there are trainers, step after step, and not for the last ones."""
    for trainers in (1, 2, 3, 4):
        tasks = several_standing_by(19, "published", trainers, 1, pace=pace_of(9.9, 9.9))
        train_all(tasks, trainers + 1, 9.9)
        sizes = [len(step.batches) for step in tasks.steps]
        together, rest = divmod(19, trainers + 1)
        assert sizes == [trainers + 1] * together + [rest] * (rest > 0)
        assert tasks.steps[-1].members == tuple(range(trainers + (not rest)))


def test_no_rank_stands_by_for_a_single_batch_or_without_the_option():
    tasks = standing_by(1)
    tasks.request_share(0, 0.0)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(0, (0, (0,), 0)), (1, "over")]
    plain = TaskQueue(4, 16, samplers=[1], trainers=[0])
    for batch in range(4):
        drawn(plain, 1, batch)
    plain.request_share(0, 0.0)
    assert as_tuples(plain.assigned_shares(0.0)) == [(0, (0, (0,), 0))]


def test_measured_speeds_are_kept_across_epochs():
    pace = TrainingPace()
    assert pace.times() == (1.0, 1.0)
    pace.note(False, 2.0)
    pace.note(False, 4.0)
    assert pace.times() == (3.0, 3.0)
    pace.note(True, 7.0)
    assert pace.times() == (3.0, 7.0)
    tasks = standing_by(2, pace)  # 2 * 3 - 7 is a loss
    tasks.request_share(0, 0.0)
    assert as_tuples(tasks.assigned_shares(0.0)) == [(0, (0, (0,), 0))]
