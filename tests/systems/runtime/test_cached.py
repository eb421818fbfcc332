"""A cache in an epoch: what it hits is what the trace of that epoch says, to the row."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from compose import counted, make, run, timed

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.features.policies.policy import PRESAMPLED, PROBED
from gnnbench.features.policies.similarity import hot_similarity
from gnnbench.features.policies.trace import Trace
from gnnbench.pipelines.alternate import Alternate
from gnnbench.pipelines.order import AsDrawn
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.stage_setup import epoch_peak_bytes

POLICIES = ["degree", "random", "presc#1", "presc#3", "optimal"]
EPOCH = 77


def cached(graph, policy, ratio, **changes):
    settings = {"features": "cache", "features.policy": policy, "features.ratio": ratio}
    return make(graph, "baseline", settings, changes.pop("until", "memory_io"), **changes)


def rows_by_path(system, epoch=EPOCH):
    system.foresee(epoch)
    report = run(system, epoch)
    assert report.ok, report.reason
    found = counted(report)
    row_bytes = system.graph.feature_dim * 4
    return [found["features", "feature_bytes", w] // row_bytes for w in ("cache", "host")]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("ratio", [0.0, 0.03, 0.1, 0.5, 1.0])
def test_hits_of_an_epoch_are_exactly_those_of_its_trace(small_graph, policy, ratio):
    system = cached(small_graph, policy, ratio)
    hits, misses = rows_by_path(system)
    rows = system.profile(EPOCH)["curves"]
    (told,) = (r for r in rows if r["policy"] == policy and r["ratio"] == ratio)
    assert told["hit_ratio"] == hits / (hits + misses)
    assert told["missed_bytes"] == pytest.approx(misses * 96 / 4)  # 4 batches
    before, trace = traces(system, PRESAMPLED, EPOCH)
    dynamic = [r["hit_ratio"] for r in rows if r["policy"] == "sieve"]
    assert dynamic == [n / trace.requests for n in trace.sieve_hits(before=before)]


def traces(system, *epochs):
    return [
        Trace.record(system.graph.num_nodes, system.stages.footprint(epoch)) for epoch in epochs
    ]


@pytest.mark.parametrize("policy", ["degree", "presc#1", "sieve"])
def test_two_epochs_are_as_alike_as_their_traces(small_graph, policy):
    system = cached(small_graph, policy, 0.1)
    before, trace = traces(system, PRESAMPLED, EPOCH)
    (fact,) = system.profile(EPOCH)["facts"]
    assert (fact["stage"], fact["name"]) == ("features", "hot_similarity")
    assert fact["value"] == hot_similarity(before.visits, trace.visits)
    assert 0 < fact["value"] < 1


@pytest.mark.parametrize("ratio", [0.0, 0.03, 0.1, 0.5, 1.0])
def test_a_dynamic_cache_hits_what_is_simulated_in_the_first_epoch_and_in_later_ones(
    small_graph, ratio
):
    """Empty at first, then as the epochs before have left it: that of the curve, a warm one."""
    system = cached(small_graph, "sieve", ratio)
    first, second, later = traces(system, PRESAMPLED, EPOCH, 5)
    assert rows_by_path(system, PRESAMPLED)[0] == first.sieve_hits([ratio])[0]
    hits, misses = rows_by_path(system)
    assert hits == second.sieve_hits([ratio], first)[0]
    told = {r["ratio"]: r["hit_ratio"] for r in system.profile(EPOCH)["curves"]}
    assert ratio not in told or told[ratio] == hits / (hits + misses)
    both = replace(first, batches=[*first.batches, *second.batches])
    assert rows_by_path(system, 5)[0] == later.sieve_hits([ratio], both)[0]


@pytest.mark.parametrize("order", ["as-drawn", "greedy"])
@pytest.mark.parametrize("policy", ["degree", "presc#1", "optimal", "sieve"])
@pytest.mark.parametrize("store", ["match", "window"])
def test_a_cache_below_is_told_what_it_is_asked(small_graph, store, policy, order):
    """What a store over a cache hits there is what the cache's own curve says, to the row."""
    settings = {"features": store, "features.table": "cache", "features.table.policy": policy,
                "features.table.ratio": 0.1, "order": order}  # fmt: skip
    settings |= {"order.window": 3} if order == "greedy" else {}
    system = make(small_graph, "baseline", settings, "memory_io", batch_size=20, fanouts=(3, 2))
    assert system.check().ok
    system = make(small_graph, "baseline", settings, "memory_io", batch_size=20, fanouts=(3, 2))
    run(system, PRESAMPLED)
    system.foresee(EPOCH)
    report = run(system, EPOCH)
    assert report.ok, report.reason
    found = counted(report)
    rows = {w: found["features", "feature_bytes", w] // 96 for w in ("cache", "host", "reused")}
    assert sum(rows.values()) == report.unique_nodes and min(rows.values()) > 0
    profile = system.profile(EPOCH)
    (told,) = (r for r in profile["curves"] if (r["policy"], r["ratio"]) == (policy, 0.1))
    assert told["hit_ratio"] == rows["cache"] / report.unique_nodes
    assert told["missed_bytes"] == pytest.approx(rows["host"] * 96 / report.batches)
    assert {f["name"] for f in profile["facts"]} >= {"match_degree", "match_degree_run"}


@pytest.mark.parametrize("order", ["as-drawn", "greedy"])
@pytest.mark.parametrize("store", ["match", "window"])
def test_an_oracle_below_knows_what_it_will_be_asked(small_graph, store, order):
    """No cache of its size, filled by what the batches hold, hits more than the oracle."""
    hits = {}
    for policy in ("optimal", "presc#1", "presc#3", "degree", "random"):
        settings = {"features": store, "features.table": "cache", "order": order,
                    "features.table.policy": policy, "features.table.ratio": 0.15}  # fmt: skip
        system = make(small_graph, "baseline", settings, "memory_io", batch_size=20, fanouts=(3, 2))
        system.foresee(EPOCH)
        hits[policy] = counted(run(system, EPOCH))["features", "feature_bytes", "cache"]
    assert max(hits.values()) == hits["optimal"] > hits["random"]


def test_the_optimum_hits_most_at_every_ratio(small_graph):
    found = {}
    for policy in POLICIES:
        rows = cached(small_graph, policy, 0.1).profile(EPOCH)["curves"]
        found[policy] = [r["hit_ratio"] for r in rows if r["policy"] == policy]
        assert found[policy][0] == 0 and found[policy][-1] == 1
        assert found[policy] == sorted(found[policy])
    for policy in POLICIES:
        assert all(a <= b for a, b in zip(found[policy], found["optimal"], strict=True))
    assert sum(found["random"]) < sum(found["presc#1"]) < sum(found["optimal"])


def test_the_optimum_of_one_epoch_is_not_that_of_another(small_graph):
    system = cached(small_graph, "optimal", 0.1)
    own, _ = rows_by_path(system)
    system.foresee(EPOCH + 1)
    other = counted(run(system, EPOCH))["features", "feature_bytes", "cache"] // 96
    assert other < own


@pytest.mark.parametrize(("policy", "told"), [("optimal", [8, 9]), ("presc#1", [])])
def test_an_oracle_is_told_the_epochs_of_a_probe_too(small_graph, policy, told):
    system = cached(small_graph, policy, 0.1)
    heard = []
    foresee = system.stages.store.foresee
    system.stages.store.foresee = lambda draw, epoch: (heard.append(epoch), foresee(draw, epoch))
    alone, reason = system.probe([8, 9])
    assert (heard, reason) == (told, "") and alone.keys() == {"sample", "memory_io"}


def test_the_gate_looks_at_cached_rows_and_setup_tells_what_it_took(small_graph):
    system = cached(small_graph, "presc#1", 0.3)
    assert system.check().ok
    told = {name: value for stage, name, where, value in system.setup_counts}
    assert told.keys() == {"hotness_time_s", "rank_time_s", "fill_time_s", "cache_rows"}
    assert told["cache_rows"] == 120 and all(value > 0 for value in told.values())
    system.stages.store._cache[0] += 1
    report = system.check()
    assert not report.ok and "gathered feature rows differ" in report.reason


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_gate_compares_bits_of_any_type_and_width(small_graph, dtype):
    table = small_graph.features[:, :5].to(dtype).contiguous()
    system = cached(replace(small_graph, features=table), "degree", 0.2)
    assert system.check().ok
    timed(system, EPOCH)
    assert system.audit(EPOCH).ok


def test_training_through_a_cache_loses_nothing(small_graph):
    plain = make(small_graph)
    through = cached(small_graph, "presc#1", 0.2, until="compute")
    assert run(plain, 3).loss == run(through, 3).loss


def test_presampled_batches_count_in_no_epoch(small_graph):
    system = cached(small_graph, "presc#2", 0.2)
    assert system.counts.rows() == []
    drawn = []
    system.stages.sampler.sample = partial(_noting, system.stages.sampler.sample, drawn)
    system.stages.store.prepare(system.stages.footprint)
    assert drawn == [PRESAMPLED] * 4 + [PRESAMPLED + 1] * 4


def _noting(sample, drawn, seeds, epoch, number):
    drawn.append(epoch)
    return sample(seeds, epoch, number)


def test_a_derived_ratio_is_told_with_what_setup_took(small_graph):
    settings = {"features": "match", "features.table": "cache", "features.table.ratio": "auto",
                "features.table.memory_gib": 100 * 96 / 2**30}  # fmt: skip
    system = make(small_graph, "baseline", settings, "memory_io")
    told = {name: value for stage, name, where, value in system.setup_counts}
    assert (told["cache_ratio"], told["cache_rows"]) == (0.25, 100)
    assert system.check().ok and run(system).ok


def test_the_epoch_whose_peak_is_measured_leaves_nothing_behind(small_graph, monkeypatch):
    for name in ("reset_peak_memory_stats", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 77)
    plain, other = make(small_graph), make(small_graph)
    heard = []
    epoch = other.schedule.epoch
    other.schedule.__dict__["epoch"] = lambda *args: (
        heard.append((args[0], len(args[1]))),
        epoch(*args),
    )
    assert epoch_peak_bytes(other) == 77
    del other.schedule.__dict__["epoch"]
    assert heard == [(PROBED, 4)]
    other.counts.clear()
    right, found = run(plain, 3), run(other, 3)
    assert found.ok and (found.loss, found.param_norm) == (right.loss, right.param_norm)
    assert found.batches == right.batches and found.counts == right.counts


@pytest.mark.parametrize(
    ("schedule", "window", "batches"),
    [({}, 1, 4), ({}, 4, 10), ({"schedule": "prefetch", "schedule.depth": 2}, 1, 8),
     ({"schedule": "alternate"}, 1, 4), ({"schedule": "alternate", "schedule.depth": 2}, 4, 14)],
)  # fmt: skip
def test_that_epoch_ends_where_nothing_more_piles_up(
    small_graph, monkeypatch, schedule, window, batches
):
    """Twice what is drawn ahead, and what is loaded ahead with what trains."""
    monkeypatch.setattr("gnnbench.systems.runtime.stage_setup.FIRST_BATCHES", 1)
    for name in ("reset_peak_memory_stats", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 77)
    windows = {"features": "window", "features.window": window} if window > 1 else {}
    system = make(small_graph, settings=schedule | windows, batch_size=8)
    heard = []
    epoch = system.schedule.epoch
    system.schedule.__dict__["epoch"] = lambda *args: (heard.append(len(args[1])), epoch(*args))
    epoch_peak_bytes(system)
    system.run_unmeasured(5)
    assert heard == [batches, len(system.seeds(5))] and heard[1] > 14


@pytest.mark.parametrize(("fanouts", "batches"), [((4, 3, 2), 8), ((4, -1), None)])
def test_that_epoch_has_eight_batches_at_least_and_all_where_all_neighbours_are_drawn(
    small_graph, monkeypatch, fanouts, batches
):
    for name in ("reset_peak_memory_stats", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 77)
    system = make(small_graph, batch_size=8, fanouts=fanouts)
    heard = []
    monkeypatch.setattr(system, "run_unmeasured", lambda epoch, most: heard.append((epoch, most)))
    epoch_peak_bytes(system)
    assert heard == [(PROBED, batches)]


def test_where_samples_wait_on_the_gpu_that_epoch_is_whole():
    assert plan_of(BASELINE.schedule).steady_after(8) == 18
    stored = Alternate(stored="gpu")
    assert plan_of(stored).steady_after(8) is None
    assert plan_of(Alternate(stored="host", depth=3)).steady_after(8) == 24


def test_tsota_is_the_baseline_with_gnnlabs_sampler_and_a_cache_by_degree(small_graph):
    system = make(small_graph, "tsota", until="memory_io")
    assert system.check().ok and run(system).ok
    assert system.recipe.features.policy == "degree" and system.recipe.sampler.name == "gnnlab"


class Others(AsDrawn):
    """An order that is not ours."""

    name = "others"


def test_only_stages_of_ours_that_repeat_themselves_draw_an_epoch_ahead():
    oracle = {"features": "cache", "features.policy": "optimal"}
    found = find("baseline").resolved({**oracle, "sampler": "dgl"}, "cpu", Until.MEMORY_IO)
    assert "sampler 'dgl' draws another one each time" in found.unsupported
    assert not find("baseline").resolved(oracle, "cpu", Until.MEMORY_IO).unsupported
    stranger = replace(BASELINE.changed(oracle), order=Others())
    with pytest.raises(UnsupportedError, match=r"only gnnbench's own stages may; order 'others'"):
        stranger.resolved("cpu", Until.MEMORY_IO)
