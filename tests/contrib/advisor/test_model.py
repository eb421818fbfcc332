"""Estimates and choices of the cost model, with facts and rates written by hand."""

from dataclasses import replace

import pytest
from hand_made import CACHED, FACTS, RATES

from gnnbench.contrib.advisor.model import Choice, Store, choices, estimate, ranked, terms
from gnnbench.core.cell import Until
from gnnbench.systems.runtime.find import find

MS = 1e-3


def fetching(store, facts=FACTS, rates=RATES):
    costs = terms(Choice("fused-map", store, "serial"), facts, rates)
    return sum(t.seconds for t in costs if t.phase == "memory_io")


@pytest.mark.parametrize(
    ("store", "expected_ms"),
    [
        (Store("host"), 1.0),
        (Store("uva"), 1.0),
        (Store("gpu"), 0.15),
        # hits read and written on the device, misses fetched, two words per id
        (Store("cache", policy="degree"), 0.6 * 0.15 + 0.4 * 1.0 + 0.02),
        (Store("cache", policy="presc#1"), 0.8 * 0.15 + 0.2 * 1.0 + 0.02),
        (Store("match"), 0.4 * 0.15 + 0.6 * 1.0 + 0.03),
        # plus ordering of 1000 ids at 10 M/s
        (Store("match", "greedy"), 0.5 * 0.15 + 0.5 * 1.0 + 0.03 + 0.1),
        # a quarter fetched as a union, all rows copied from it
        (Store("window"), 0.25 * 0.5 + 0.15 + 0.03),
        # half of that quarter is cached, with additional cache lookups
        (Store("window", policy="presc#1"), 0.125 * 0.5 + (1 + 0.125) * 0.15 + 0.03 + 0.005),
    ],
)
def test_memory_io_time_of_every_store(store, expected_ms):
    assert fetching(store, CACHED) == pytest.approx(expected_ms * MS)


def test_serial_epoch_is_the_sum_of_its_phases():
    resolved = estimate(Choice("fused-map", Store("host"), "serial"), FACTS, RATES, "cpu", 0, 2)
    assert resolved.phases == pytest.approx({"sample": MS, "memory_io": MS, "compute": 2 * MS})
    assert resolved.batch_s == pytest.approx(4 * MS) and resolved.first_s == 0
    assert resolved.epoch_s == pytest.approx(40 * MS)


def test_gpu_phases_on_the_same_resource_are_added():
    """Sampling and training use the multiprocessors for 3 ms, rows the link for 1 ms."""
    choice = Choice("fused-map", Store("uva"), "prefetch")
    resolved = estimate(choice, FACTS, RATES, "cuda")
    assert resolved.batch_s == pytest.approx(3 * MS) and resolved.first_s == pytest.approx(MS)
    assert resolved.epoch_s == pytest.approx((10 * 3 + 1) * MS)
    slow = estimate(choice, FACTS, replace(RATES, fetch=1e7), "cuda")  # 10 ms of rows
    assert slow.batch_s == pytest.approx(10 * MS) and slow.first_s == pytest.approx(3 * MS)
    # rows on the device use the multiprocessors as well
    on_device = estimate(Choice("fused-map", Store("gpu"), "prefetch"), FACTS, RATES, "cuda")
    assert on_device.batch_s == pytest.approx(3.15 * MS) and on_device.first_s == pytest.approx(0)


def test_cpu_phases_share_the_cores():
    choice = Choice("fused-map", Store("host"), "prefetch")
    assert estimate(choice, FACTS, RATES, "cpu", 0, 4).batch_s == pytest.approx(4 * MS)
    half = estimate(choice, FACTS, RATES, "cpu", 2, 4)  # of 4 cores: half of the sum, the longest
    assert half.batch_s == pytest.approx(2 * MS) and half.first_s == pytest.approx(2 * MS)


def test_choices_by_device_and_cache_ratio():
    on_cpu, on_gpu = choices(FACTS, "cpu"), choices(CACHED, "cuda")
    assert len(on_cpu) == len(set(on_cpu)) == 24
    assert len(on_gpu) == len(set(on_gpu)) == 24
    assert not any(c.store.policy for c in choices(FACTS, "cuda"))
    with_whole_table = choices(replace(FACTS, ratio=1.0), "cuda")
    assert {c.store.name for c in with_whole_table} == {"gpu", "uva", "match", "window"}


def first(facts, rates, device, threads=0, cores=2):
    best = ranked(facts, rates, device, threads, cores)[0]
    return best.choice


def test_simpler_choice_is_advised_between_equals_on_a_cpu():
    rates = replace(RATES, there=1e8)  # on a CPU, reading a row costs as much as fetching it
    assert first(FACTS, rates, "cpu") == Choice("fused-map", Store("host"), "serial")
    assert first(FACTS, rates, "cpu", threads=1) == Choice("fused-map", Store("host"), "prefetch")
    faster = replace(rates, sample={**rates.sample, "fastsample": 6e6})
    assert first(FACTS, faster, "cpu") == Choice("fastsample", Store("host"), "serial")


def test_slow_link_favours_the_store_that_loads_fewest_rows():
    slower = replace(RATES, fetch=1e6, fetch_union=1e6)  # the link is the longest of all
    # ms: uva 100; caches 40.1 and 20.1; match 50.2; window 25.2; window over a cache 12.7
    assert first(CACHED, slower, "cuda") == Choice(
        "fused-map", Store("window", policy="presc#1"), "prefetch"
    )
    assert first(replace(CACHED, ratio=0.0), slower, "cuda").store == Store("window")
    together = replace(CACHED, ratio=0.0, union=0.9)  # a window saves less than the order does
    assert first(together, slower, "cuda").store == Store("match", "greedy")
    no_reuse = replace(CACHED, union=1.0, union_missed=0.2, kept_drawn=0.0, kept_greedy=0.0)
    assert first(no_reuse, slower, "cuda").store == Store("cache", policy="presc#1")
    by_degree = replace(no_reuse, curves=tuple(reversed([
        replace(FACTS.curves[0], policy="presc#1"), replace(FACTS.curves[1], policy="degree"),
    ])), union_missed=0.5)  # fmt: skip
    assert first(by_degree, slower, "cuda").store == Store("cache", policy="degree")


def test_table_that_fits_is_placed_on_the_gpu():
    link_bound = replace(RATES, fetch=1e7, fetch_union=1e7, step=2000.0)
    facts = replace(FACTS, ratio=1.0)
    assert first(facts, link_bound, "cuda") == Choice("fused-map", Store("gpu"), "prefetch")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_choice_is_a_recipe(device):
    for choice in choices(CACHED if device == "cuda" else FACTS, device):
        settings = choice.settings(0.1, device)
        resolved = find("best").resolved(settings, device, Until.COMPUTE)
        assert not resolved.unsupported, (choice, resolved.unsupported)
        assert resolved.recipe["sampler"]["name"] == choice.sampler
        assert resolved.recipe["schedule"]["name"] == choice.schedule
        assert resolved.recipe["order"]["name"] == choice.store.order
        assert resolved.recipe["features"]["name"] == choice.store.name


def test_cache_settings_belong_to_the_caching_store():
    cache = Choice("fused-map", Store("cache", policy="degree"), "serial").settings(0.1, "cuda")
    assert cache == {
        "sampler": "fused-map", "features": "cache", "order": "as-drawn", "schedule": "serial",
        "schedule.step": "graph", "features.policy": "degree", "features.ratio": 0.1,
    }  # fmt: skip
    below = Choice("fused-map", Store("window", policy="presc#1"), "prefetch").settings(0.2, "cuda")
    assert below["features.table"] == "cache" and below["features.window"] == 8
    assert below["features.table.policy"] == "presc#1" and below["features.table.ratio"] == 0.2
