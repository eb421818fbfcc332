"""A cache in an epoch: its hits equal those of the epoch's trace exactly."""

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
from gnnbench.systems.runtime.built_system import foresee_untimed
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.stage_setup import epoch_peak_bytes

POLICIES = ["degree", "random", "presc#1", "presc#3", "optimal", "optimal#3"]
EPOCH = 77


def cached(graph, policy, ratio, **changes):
    settings = {"features": "cache", "features.policy": policy, "features.ratio": ratio}
    return make(graph, "baseline", settings, changes.pop("until", "memory_io"), **changes)


def rows_by_path(system, epoch=EPOCH):
    foresee_untimed(system, epoch)
    report = run(system, epoch)
    assert report.ok, report.reason
    counts = counted(report)
    row_bytes = system.graph.feature_dim * 4
    return [counts["features", "feature_bytes", w] // row_bytes for w in ("cache", "host")]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("ratio", [0.0, 0.03, 0.1, 0.5, 1.0])
def test_hits_of_an_epoch_equal_those_of_its_trace(small_graph, policy, ratio):
    system = cached(small_graph, policy, ratio)
    hits, misses = rows_by_path(system)
    rows = system.profile(EPOCH)["curves"]
    (point,) = (r for r in rows if r["policy"] == policy and r["ratio"] == ratio)
    assert point["hit_ratio"] == hits / (hits + misses)
    assert point["missed_bytes"] == pytest.approx(misses * 96 / 4)  # 4 batches
    before, trace = traces(system, PRESAMPLED, EPOCH)
    dynamic = [r["hit_ratio"] for r in rows if r["policy"] == "sieve"]
    assert dynamic == [n / trace.requests for n in trace.sieve_hits(before=before)]


def traces(system, *epochs):
    return [
        Trace.record(system.graph.num_nodes, system.stages.footprint(epoch)) for epoch in epochs
    ]


@pytest.mark.parametrize("policy", ["degree", "presc#1", "sieve"])
def test_hot_similarity_of_two_epochs_equals_that_of_their_traces(small_graph, policy):
    system = cached(small_graph, policy, 0.1)
    before, trace = traces(system, PRESAMPLED, EPOCH)
    (fact,) = system.profile(EPOCH)["facts"]
    assert (fact["stage"], fact["name"]) == ("features", "hot_similarity")
    assert fact["value"] == hot_similarity(before.visits, trace.visits)
    assert 0 < fact["value"] < 1


@pytest.mark.parametrize("ratio", [0.0, 0.03, 0.1, 0.5, 1.0])
def test_hits_of_a_dynamic_cache_equal_the_simulation(small_graph, ratio):
    """Empty in the first epoch, then with the content of earlier epochs, as in the curve."""
    system = cached(small_graph, "sieve", ratio)
    first, second, later = traces(system, PRESAMPLED, EPOCH, 5)
    assert rows_by_path(system, PRESAMPLED)[0] == first.sieve_hits([ratio])[0]
    hits, misses = rows_by_path(system)
    assert hits == second.sieve_hits([ratio], first)[0]
    curve = {r["ratio"]: r["hit_ratio"] for r in system.profile(EPOCH)["curves"]}
    assert ratio not in curve or curve[ratio] == hits / (hits + misses)
    both = replace(first, batches=[*first.batches, *second.batches])
    assert rows_by_path(system, 5)[0] == later.sieve_hits([ratio], both)[0]


@pytest.mark.parametrize("order", ["as-drawn", "greedy"])
@pytest.mark.parametrize("policy", ["degree", "presc#1", "optimal", "optimal#3", "sieve"])
@pytest.mark.parametrize("store", ["match", "window"])
def test_hits_of_a_cache_below_a_store_equal_its_curve(small_graph, store, policy, order):
    """The curve is that of the requests that the store sends to its cache."""
    settings = {"features": store, "features.table": "cache", "features.table.policy": policy,
                "features.table.ratio": 0.1, "order": order}  # fmt: skip
    settings |= {"order.window": 3} if order == "greedy" else {}
    system = make(small_graph, "baseline", settings, "memory_io", batch_size=20, fanouts=(3, 2))
    assert system.check().ok
    system = make(small_graph, "baseline", settings, "memory_io", batch_size=20, fanouts=(3, 2))
    run(system, PRESAMPLED)
    foresee_untimed(system, EPOCH)
    report = run(system, EPOCH)
    assert report.ok, report.reason
    counts = counted(report)
    rows = {w: counts["features", "feature_bytes", w] // 96 for w in ("cache", "host", "reused")}
    assert sum(rows.values()) == report.unique_nodes and min(rows.values()) > 0
    profile = system.profile(EPOCH)
    (point,) = (r for r in profile["curves"] if (r["policy"], r["ratio"]) == (policy, 0.1))
    assert point["hit_ratio"] == rows["cache"] / report.unique_nodes
    assert point["missed_bytes"] == pytest.approx(rows["host"] * 96 / report.batches)
    assert {f["name"] for f in profile["facts"]} >= {"match_degree", "match_degree_run"}


@pytest.mark.parametrize("order", ["as-drawn", "greedy"])
@pytest.mark.parametrize("store", ["match", "window"])
def test_oracle_below_a_store_hits_most(small_graph, store, order):
    """No other policy with the same size has more hits than the oracle."""
    hits = {}
    for policy in ("optimal", "presc#1", "presc#3", "degree", "random"):
        settings = {"features": store, "features.table": "cache", "order": order,
                    "features.table.policy": policy, "features.table.ratio": 0.15}  # fmt: skip
        system = make(small_graph, "baseline", settings, "memory_io", batch_size=20, fanouts=(3, 2))
        foresee_untimed(system, EPOCH)
        hits[policy] = counted(run(system, EPOCH))["features", "feature_bytes", "cache"]
    assert max(hits.values()) == hits["optimal"] > hits["random"]


def test_optimal_policy_hits_most_at_every_ratio(small_graph):
    curves = {}
    for policy in POLICIES:
        rows = cached(small_graph, policy, 0.1).profile(EPOCH)["curves"]
        curves[policy] = [r["hit_ratio"] for r in rows if r["policy"] == policy]
        assert curves[policy][0] == 0 and curves[policy][-1] == 1
        assert curves[policy] == sorted(curves[policy])
    for policy in POLICIES:
        assert all(a <= b for a, b in zip(curves[policy], curves["optimal"], strict=True))
    assert sum(curves["random"]) < sum(curves["presc#1"]) < sum(curves["optimal"])


def test_optimal_policy_of_several_epochs_hits_most_in_them_together(small_graph):
    """More than any policy that no epoch was known to, less than the oracle of each epoch."""
    epochs, hits = range(EPOCH, EPOCH + 4), {}
    for policy in (*POLICIES, "optimal#4"):
        system = cached(small_graph, policy, 0.1)
        if policy == "optimal#4":
            system.foresee(epochs)
        hits[policy] = 0
        for epoch in epochs:
            if policy == "optimal":
                system.foresee((epoch,))
            hits[policy] += counted(run(system, epoch))["features", "feature_bytes", "cache"]
    others = max(n for p, n in hits.items() if not p.startswith("optimal"))
    assert others < hits["optimal#4"] < hits["optimal"]


def test_optimal_policy_of_another_epoch_hits_less(small_graph):
    system = cached(small_graph, "optimal", 0.1)
    own, _ = rows_by_path(system)
    system.foresee((EPOCH + 1,))
    other = counted(run(system, EPOCH))["features", "feature_bytes", "cache"] // 96
    assert other < own


@pytest.mark.parametrize(
    ("policy", "expected"), [("optimal", [(8,), (9,)]), ("optimal#2", []), ("presc#1", [])]
)
def test_oracle_of_an_epoch_prefetches_the_epochs_of_a_probe(small_graph, policy, expected):
    system = cached(small_graph, policy, 0.1)
    epochs = []
    foresee = system.stages.store.foresee
    system.stages.store.foresee = lambda draw, of: (epochs.append(of), foresee(draw, of))
    alone, reason = system.probe([8, 9])
    assert (epochs, reason) == (expected, "") and alone.keys() == {"sample", "memory_io"}


def test_gate_checks_cached_rows_and_setup_reports_times(small_graph):
    system = cached(small_graph, "presc#1", 0.3)
    assert system.check().ok
    setup = {name: value for stage, name, where, value in system.setup_counts}
    assert setup.keys() == {"hotness_time_s", "rank_time_s", "fill_time_s", "cache_rows"}
    assert setup["cache_rows"] == 120 and all(value > 0 for value in setup.values())
    system.stages.store._cache[0] += 1
    report = system.check()
    assert not report.ok and "gathered feature rows differ" in report.reason


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gate_compares_rows_of_any_type_and_width(small_graph, dtype):
    table = small_graph.features[:, :5].to(dtype).contiguous()
    system = cached(replace(small_graph, features=table), "degree", 0.2)
    assert system.check().ok
    timed(system, EPOCH)
    assert system.audit(EPOCH).ok


def test_training_with_a_cache_has_the_same_loss(small_graph):
    plain = make(small_graph)
    with_cache = cached(small_graph, "presc#1", 0.2, until="compute")
    assert run(plain, 3).loss == run(with_cache, 3).loss


def test_presampled_batches_are_not_counted(small_graph):
    system = cached(small_graph, "presc#2", 0.2)
    assert system.counts.rows() == []
    drawn = []
    system.stages.sampler.sample = partial(_recording, system.stages.sampler.sample, drawn)
    system.stages.store.prepare(system.stages.footprint)
    assert drawn == [PRESAMPLED] * 4 + [PRESAMPLED + 1] * 4


def _recording(sample, drawn, seeds, epoch, number):
    drawn.append(epoch)
    return sample(seeds, epoch, number)


def test_derived_cache_ratio_is_reported_by_setup(small_graph):
    settings = {"features": "match", "features.table": "cache", "features.table.ratio": "auto",
                "features.table.memory_gib": 100 * 96 / 2**30}  # fmt: skip
    system = make(small_graph, "baseline", settings, "memory_io")
    setup = {name: value for stage, name, where, value in system.setup_counts}
    assert (setup["cache_ratio"], setup["cache_rows"]) == (0.25, 100)
    assert system.check().ok and run(system).ok


@pytest.fixture
def gpu_peak(monkeypatch):
    """Torch reports a peak of 77 bytes of GPU memory."""
    for name in ("reset_peak_memory_stats", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 77)


def test_epoch_of_the_peak_measurement_does_not_change_later_epochs(small_graph, gpu_peak):
    plain, other = make(small_graph), make(small_graph)
    epochs = []
    epoch = other.schedule.epoch
    other.schedule.__dict__["epoch"] = lambda *args: (
        epochs.append((args[0], len(args[1]))),
        epoch(*args),
    )
    assert epoch_peak_bytes(other) == 77
    del other.schedule.__dict__["epoch"]
    assert epochs == [(PROBED, 4)]
    other.counts.clear()
    expected, actual = run(plain, 3), run(other, 3)
    assert actual.ok and (actual.loss, actual.param_norm) == (expected.loss, expected.param_norm)
    assert actual.batches == expected.batches and actual.counts == expected.counts


@pytest.mark.parametrize(
    ("schedule", "window", "batches"),
    [({}, 1, 4), ({}, 4, 10), ({"schedule": "prefetch", "schedule.depth": 2}, 1, 8),
     ({"schedule": "alternate"}, 1, 4), ({"schedule": "alternate", "schedule.depth": 2}, 4, 14)],
)  # fmt: skip
def test_peak_epoch_ends_in_the_steady_state(
    small_graph, monkeypatch, gpu_peak, schedule, window, batches
):
    """After twice the batches sampled ahead, plus those loaded ahead and in training."""
    monkeypatch.setattr("gnnbench.systems.runtime.stage_setup.FIRST_BATCHES", 1)
    windows = {"features": "window", "features.window": window} if window > 1 else {}
    system = make(small_graph, settings=schedule | windows, batch_size=8)
    epochs = []
    epoch = system.schedule.epoch
    system.schedule.__dict__["epoch"] = lambda *args: (epochs.append(len(args[1])), epoch(*args))
    epoch_peak_bytes(system)
    system.run_unmeasured(5)
    assert epochs == [batches, len(system.seeds(5))] and epochs[1] > 14


@pytest.mark.parametrize(("fanouts", "batches"), [((4, 3, 2), 8), ((4, -1), None)])
def test_peak_epoch_has_at_least_eight_batches_or_all(
    small_graph, monkeypatch, gpu_peak, fanouts, batches
):
    system = make(small_graph, batch_size=8, fanouts=fanouts)
    epochs = []
    monkeypatch.setattr(system, "run_unmeasured", lambda epoch, most: epochs.append((epoch, most)))
    epoch_peak_bytes(system)
    assert epochs == [(PROBED, batches)]


def test_peak_epoch_is_complete_if_samples_are_stored_on_the_gpu():
    assert plan_of(BASELINE.schedule).steady_after(8) == 18
    stored = Alternate(stored="gpu")
    assert plan_of(stored).steady_after(8) is None
    assert plan_of(Alternate(stored="host", depth=3)).steady_after(8) == 24


def test_tsota_has_gnnlabs_sampler_and_a_degree_cache(small_graph):
    system = make(small_graph, "tsota", until="memory_io")
    assert system.check().ok and run(system).ok
    assert system.recipe.features.policy == "degree" and system.recipe.sampler.name == "gnnlab"


class Others(AsDrawn):
    """A custom order."""

    name = "others"


def test_oracle_needs_built_in_reproducible_stages():
    oracle = {"features": "cache", "features.policy": "optimal"}
    resolved = find("baseline").resolved({**oracle, "sampler": "dgl"}, "cpu", Until.MEMORY_IO)
    assert "sampler 'dgl' draws another one each time" in resolved.unsupported
    assert not find("baseline").resolved(oracle, "cpu", Until.MEMORY_IO).unsupported
    custom = replace(BASELINE.changed(oracle), order=Others())
    with pytest.raises(UnsupportedError, match=r"only gnnbench's own stages may; order 'others'"):
        custom.resolved("cpu", Until.MEMORY_IO)
