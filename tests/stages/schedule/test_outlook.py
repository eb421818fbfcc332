"""What a forecast of more ranks goes by: counts are what ranks do, ceilings leave all as it was."""

import pytest
import torch
from compose import counted, make, run
from rank_groups import SMALL
from test_partitioned import METHOD

from gnnbench.measure.timeline import Timeline
from gnnbench.stages.schedule import outlook

pytestmark = pytest.mark.usefixtures("one_thread")

PHASES = ("sample", "memory_io", "compute")
TWO = {**SMALL, "max_batches": outlook.BATCHES}  # as many as are counted


def by_name(facts):
    """Facts by measure and place, over stages."""
    found = {}
    for _, name, where, value in facts:
        found[name, where] = found.get((name, where), 0) + value
    return found


@pytest.mark.parametrize("mode", ["none", "seeds", "vanilla", "hybrid"])
def test_what_is_counted_is_what_ranks_do(group, mode):
    parts = {} if mode == "none" else {"schedule.partition": mode, **METHOD}
    foreseen = by_name(group(1, parts, **TWO).check().counts)
    report = run(group(4, parts, **TWO))
    found = counted(report)
    rows = report.unique_nodes + found["schedule", "again_nodes", ""]
    edges = report.sampled_edges + found["schedule", "again_edges", ""]
    assert foreseen["split_all_rows", "4"] * outlook.BATCHES == rows
    assert foreseen["split_all_edges", "4"] * outlook.BATCHES == edges
    sent = sum(value for (_, name, _), value in found.items() if name == "sent_bytes")
    assert foreseen.get(("split_sent_bytes", "4"), 0) * outlook.BATCHES == sent
    assert (sent > 0) == (mode in ("vanilla", "hybrid"))
    away = foreseen.get(("split_away_rows", "4"), 0) * outlook.BATCHES * 24 * 4
    assert away == found.get(("features", "feature_bytes", "network"), 0)


def test_more_ranks_are_counted_as_long_as_a_batch_has_seeds_for_them(small_graph):
    system = make(small_graph, **SMALL)
    seeds = system.order.batches(0)  # three of 64, one of 8
    found = by_name(outlook.counted(system.stages, seeds, None))
    ranks = [2**n for n in range(7)]
    assert [int(where) for name, where in found if name == "split_rows"] == ranks
    for name in ("split_rows", "split_edges"):
        most = [found[name, str(n)] for n in ranks]
        whole = [found[name.replace("split", "split_all"), str(n)] for n in ranks]
        assert most == sorted(most, reverse=True) and whole == sorted(whole)
        assert all(n * one >= all_of for n, one, all_of in zip(ranks, most, whole, strict=True))
    # Of one seed a rank the one with most has as many as any.
    sizes = [
        system.stages.sampler.sample(seed.view(1), 0, number).sizes().num_nodes
        for number, batch in enumerate(seeds[:2])
        for seed in batch
    ]
    assert found["split_rows", "64"] == (max(sizes[:64]) + max(sizes[64:])) / 2


def test_parts_that_nobody_makes_are_not_counted(small_graph):
    class Held:
        mode = "seeds"

        def into(self, parts):
            return None

    system = make(small_graph, **SMALL)
    assert outlook.counted(system.stages, system.order.batches(0), Held()) == []


def test_two_ranks_measure_what_a_step_takes_at_least(group):
    system = group(2, {"schedule.partition": "hybrid", **METHOD})
    before = [t.clone() for t in system.trainer.kept()]
    report = system.check()
    assert report.ok, report.reason
    found = by_name(report.counts)
    names = {"reduce_latency_s", "reduce_rate", "exchange_latency_s", "exchange_rate"}
    assert {name for name, _ in found} == names | {f"floor_{phase}_s" for phase in PHASES}
    assert all(value > 0 for value in found.values())
    for own, kept in zip(system.trainer.kept(), before, strict=True):
        assert torch.equal(own, kept)
    again = system.verify(3, Timeline.on("cpu"))
    assert again.ok, again.reason
    assert not group(4).check().counts and not group(2, until="memory_io").check().counts
