"""GNNLab's formulas, compared with hand-computed values and the paper's tables."""

import math

import pytest

from gnnbench.distributed.allocation import Allocation, allocate, profit, switches


@pytest.mark.parametrize(
    ("gpus", "sample_s", "train_s", "samplers", "trainers"),
    [
        (8, 1.0, 3.0, 2, 6),  # 8 / 4
        (8, 0.1, 0.3, 2, 6),  # the same, though 0.3 / 0.1 is not 3
        (8, 1.0, 3.01, 2, 6),  # 1.995 and 2.005 are rounded up
        (8, 1.0, 2.99, 3, 5),
        (8, 1.0, 1.0, 4, 4),
        (3, 1.0, 1000.0, 1, 2),  # never none
        (2, 10.0, 1.0, 2, 0),  # no trainer is left: both switch
        (1, 1.0, 4.0, 1, 0),  # one GPU alternates
    ],
)
def test_samplers_are_rounded_up(gpus, sample_s, train_s, samplers, trainers):
    assert allocate(gpus, sample_s, train_s) == Allocation(samplers, trainers)


# Seconds an epoch of sampling, extracting and training (Table 5), Samplers of 8 GPUs (Table 4).
TABLES = {
    ("gcn", "products"): (0.39, 0.15, 1.18, 2),
    ("gcn", "twitter"): (0.37, 0.76, 1.51, 2),
    ("gcn", "papers100m"): (0.96, 0.49, 3.82, 2),
    ("gcn", "uk_2006"): (0.56, 3.06, 3.09, 2),
    ("graphsage", "products"): (0.20, 0.08, 0.24, 4),
    ("graphsage", "twitter"): (0.16, 0.41, 0.43, 2),
    ("graphsage", "papers100m"): (0.46, 0.28, 1.15, 2),
    ("graphsage", "uk_2006"): (0.26, 1.39, 1.01, 1),
    ("pinsage", "products"): (0.20, 0.08, 1.72, 1),
    ("pinsage", "twitter"): (0.28, 0.51, 2.52, 1),
    ("pinsage", "papers100m"): (0.61, 0.33, 6.01, 1),
    ("pinsage", "uk_2006"): (0.65, 3.37, 7.00, 1),
}
# The paper has one Sampler fewer than its own formula gives of its own times: 2.2, 2.3 and 1.3.
FEWER = {("graphsage", "twitter"), ("graphsage", "papers100m"), ("graphsage", "uk_2006")}


@pytest.mark.parametrize("workload", TABLES, ids="-".join)
def test_the_papers_table(workload):
    sample, extract, train, published = TABLES[workload]
    allocation = allocate(8, sample, max(extract, train))
    assert allocation.samplers == published + (workload in FEWER)
    assert allocation.samplers + allocation.trainers == 8


def test_profit_is_the_others_time_minus_the_own_time():
    assert profit(6, 3, 2.0, 2.5) == 6 * 2.0 / 3 - 2.5
    assert profit(0, 3, 2.0, 2.5) == -2.5
    assert profit(6, 0, 2.0, 2.5) == math.inf


def test_standby_trainer_wakes_for_profit_and_work():
    assert switches(4, 3, 2.0, 2.5)  # 2.67 s of work are left
    assert not switches(3, 3, 2.0, 2.5)
    assert not switches(3, 3, 2.0, 2.0)  # 0 is no gain
    assert switches(1, 0, 2.0, 2.5)
    assert not switches(0, 0, 2.0, 2.5)  # infinite profit without work


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_times_must_be_times(seconds):
    with pytest.raises(ValueError, match="sample_s must be a time above 0"):
        allocate(2, seconds, 1.0)
    with pytest.raises(ValueError, match="train_s must be a time above 0"):
        allocate(2, 1.0, seconds)
    with pytest.raises(ValueError, match="standby_s must be a time above 0"):
        profit(1, 1, 1.0, seconds)


def test_numbers_must_not_be_negative():
    with pytest.raises(ValueError, match="0 GPUs cannot be allocated"):
        allocate(0, 1.0, 1.0)
    for remaining, trainers in ((-1, 1), (1, -1)):
        with pytest.raises(ValueError, match="must not be negative"):
            profit(remaining, trainers, 1.0, 1.0)
