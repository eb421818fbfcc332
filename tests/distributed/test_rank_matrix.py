"""In every mode, 1 and 2 or 4 ranks sample the edges of one process and reach its losses.

A mode is how ranks split a batch, share rows and reduce gradients. Two ranks suffice for the named
systems, because no stage depends on the number of ranks.
"""

import pytest
import torch
from compose import counted, make, run
from rank_groups import SMALL, trained

from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.usefixtures("one_thread")

BATCHES, HOPS, ROW = 4, 2, 24 * 4
CACHED = {"features.ratio": 0.2, "features.policy": "degree"}


def parts(mode, **more):
    # METIS cuts few edges of these 400 nodes.
    return {"schedule.partition": mode, "schedule.method": "random", **more}


# By name: the system, its settings, and the sources of rows with one rank and with several.
MODES = {
    "shards": ("baseline", {}, "host", "host"),
    "ddp": ("baseline", {"schedule.gradients": "ddp"}, "host", "host"),
    "fused": ("fastsample", {}, "host", "host"),
    "match": ("fastgl", {"order": "as-drawn"}, "host reused", "host reused"),
    "window": (
        "fastgl", {"order": "as-drawn", "features": "window", "features.window": 3},
        "host reused", "host reused",
    ),
    "cache": ("baseline", {"features": "cache", **CACHED}, "cache host", "cache host"),
    "sharded": ("baseline", {"features": "sharded"}, "cache", "cache peer"),
    "sharded cache": (
        "baseline", {"features": "sharded", **CACHED}, "cache host", "cache peer host",
    ),
    "seeds": ("baseline", parts("seeds"), "host", "host"),
    "vanilla": ("baseline", parts("vanilla"), "host", "host network"),
    "hybrid": ("baseline", parts("hybrid"), "host", "host network"),
    "hybrid, fused, ddp": (
        "fastsample", parts("hybrid", **{"schedule.gradients": "ddp"}), "host", "host network",
    ),
}  # fmt: skip
# One of each kind: how a batch is split, how rows are reused and shared, how gradients are summed.
IN_FOUR = {"shards", "window", "sharded cache", "vanilla", "hybrid, fused, ddp"}
ALONE = {}  # results of one process, by system and stages


def alone(graph, system, settings):
    """Return the epochs of one process and the digest of a verified epoch."""
    stages = {k: v for k, v in settings.items() if not k.startswith("schedule")}
    if (key := (system, *stages.items())) not in ALONE:
        plain = make(graph, system, {**stages, "schedule": "serial"}, **SMALL)
        ALONE[key] = trained(plain, 2), digest(plain)
        plain.close()
    return ALONE[key]


def digest(system):
    report = system.verify(5, Timeline.on("cpu"))
    assert report.ok, report.reason
    assert report.digest
    return report.digest


def learns_as_one_process(graph, system, name, settings):
    """Run the gate, two epochs and a verified one; returns the report of the next epoch."""
    report = system.check()
    assert report.ok, report.reason
    epochs, edges = alone(graph, name, settings)
    for (one, facts, weights), (other, merged, moved) in zip(
        epochs, trained(system, 2), strict=True
    ):
        assert merged == facts
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(moved, weights, rtol=1e-3, atol=1e-4)
    before = system.trainer.kept()
    assert digest(system) == edges
    for own, kept in zip(system.trainer.kept(), before, strict=True):
        assert torch.equal(own, kept)  # the next epoch broadcasts these weights to all ranks
    assert system.recheck(6) == ""
    after = run(system, 7)
    assert after.ok, after.reason
    return after


@pytest.mark.parametrize(
    ("mode", "ranks"), [(mode, n) for mode in MODES for n in (1, 4 if mode in IN_FOUR else 2)]
)
def test_ranks_equal_one_process(group, small_graph, mode, ranks):
    name, settings, of_one, of_several = MODES[mode]
    system = group(ranks, settings, system=name)
    report = learns_as_one_process(small_graph, system, name, settings)
    counts = counted(report)
    again = counts["schedule", "again_nodes", ""], counts["schedule", "again_edges", ""]
    assert all(again) if ranks > 1 else not any(again)
    served = {w: n for (_, what, w), n in counts.items() if what == "feature_bytes" and n}
    assert served.keys() == set((of_one if ranks == 1 else of_several).split())
    assert sum(served.values()) == (report.unique_nodes + again[0]) * ROW
    split = settings.get("schedule.partition", "none")
    rounds = {stage: n for (stage, what, _), n in counts.items() if what == "exchange_rounds"}
    right = {"vanilla": {"sampler": 2 * (HOPS - 1), "features": 2}, "hybrid": {"features": 2}}
    assert rounds == {stage: BATCHES * n for stage, n in right.get(split, {}).items()}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("best", {}),
        ("gnnadvisor", {}),
        ("gnnlab", {"features.ratio": 0.2}),
        ("pagraph", {"features.ratio": 0.2}),
        ("tsota", {"features.ratio": 0.2}),
        ("zero-copy", {}),
    ],
)
def test_every_native_system_trains_in_ranks(group, small_graph, name, settings):
    learns_as_one_process(small_graph, group(2, settings, system=name), name, settings)
