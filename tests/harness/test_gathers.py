"""Gather and copy rates and modelled requests, from samples written by hand."""

from dataclasses import replace

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness.reduce.gather_rates import rate_rows, request_rows, requests_per_row, served
from gnnbench.schema.samples import EpochSample, read_counts

GATHER = Cell("e", "a", "d", "", until="memory_io", fanouts=())


def sample(seconds, host=0, zero_copy=0, reused=0, copies=()):
    counts = [
        ["features", "feature_bytes", where, size]
        for where, size in (("host", host), ("zero_copy", zero_copy), ("reused", reused))
        if size
    ]
    counts += [["features", "copy_time_s", where, s] for where, s in copies]
    counts.append(["features", "calls", "host", 3])
    return EpochSample(memory_io_time_s=seconds, counts=read_counts(counts))


def rates_of(trials, cell=GATHER):
    return {(r["name"], r["where"]): r["value"] for r in rate_rows(cell, trials)}


def test_reused_rows_are_not_counted_as_served():
    one = sample(1.0, host=40, zero_copy=8, reused=100)
    assert served(one.counts) == {"host": 40, "zero_copy": 8}
    assert served([]) == {}


def test_row_rate_is_bytes_over_memory_io_time():
    one = sample(2.0, host=400, zero_copy=100, copies=[("host", 0.5), ("zero_copy", 0.25)])
    rates = rates_of([[one, one], [one]])
    assert rates == pytest.approx({
        ("row_rate", ""): 250.0, ("of_copy", ""): 0.375,
        ("copy_rate", "host"): 800.0, ("copy_rate", "zero_copy"): 400.0,
    })  # fmt: skip


def test_interval_of_rates_is_over_trials():
    trials = [[sample(s, host=100, copies=[("host", 1.0)])] for s in (1.0, 2.0, 4.0)]
    (rate,) = (r for r in rate_rows(GATHER, trials) if r["name"] == "row_rate")
    assert rate["value"] == pytest.approx(50.0) and rate["n"] == 3
    assert rate["low"] < 50.0 < rate["high"] and rate["unit"] == "B/s"


def test_no_rates_without_copies_or_bytes():
    assert rates_of([[sample(2.0, host=100)]]) == pytest.approx({("row_rate", ""): 50.0})
    assert rates_of([[sample(2.0)]]) == rates_of([[sample(None, host=100)]]) == {}


def test_requests_per_row_follow_the_published_model():
    """From PyTorch-Direct's listings: whole lines are equal, 1028 bytes need twice as many."""
    assert requests_per_row(256) == {"naive": 8.0, "aligned": 8.0, "lines": 8.0}
    assert requests_per_row(16) == {"naive": 1.0, "aligned": 1.0, "lines": 1.0}
    odd = requests_per_row(257)
    assert odd["naive"] == pytest.approx(16.8, abs=0.1)
    assert odd["aligned"] == pytest.approx(10.4, abs=0.1)
    assert odd["lines"] == pytest.approx(9.0, abs=0.05)
    assert requests_per_row(120)["lines"] == 4.5
    assert requests_per_row(65536)["naive"] == 2048.0


def test_requests_are_reported_for_gathers_only():
    rows = request_rows(GATHER, {"feature_dim": 256})
    assert [(r["where"], r["value"]) for r in rows] == [
        ("naive", 8.0), ("aligned", 8.0), ("lines", 8.0),
    ]  # fmt: skip
    assert request_rows(replace(GATHER, fanouts=(5,)), {"feature_dim": 256}) == []
    assert request_rows(GATHER, {}) == []
