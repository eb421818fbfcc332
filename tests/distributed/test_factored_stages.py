"""Stages of the ranks of a factored schedule, and the checks of its steps."""

from types import SimpleNamespace

import pytest
import torch
from compose import make, run
from factored_ranks import SMALL

from gnnbench.core.cell import Until
from gnnbench.distributed.executor import Executor, JoinWithRole
from gnnbench.distributed.factored_results import TrainedBatch, TrainedEpoch, merge_trained
from gnnbench.distributed.step_verification import StepVerification
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.sampling.native import native
from gnnbench.systems.gnnlab import GNNLAB
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import from_plain
from gnnbench.systems.runtime.worker_rank import WorkerRank

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("settings", "lean"),
    [
        ({"schedule.trainers": 1}, ["uva", "gpu"]),
        ({"schedule.trainers": 2}, ["uva", "uva", "gpu"]),
        ({"schedule.trainers": 2, "schedule.standby": True}, ["uva", "uva", "gpu"]),
        ({"schedule.samplers": 2, "schedule.allocation": "auto"}, ["uva", "uva", "gpu"]),
    ],
)
def test_trainers_store_no_topology_on_their_gpus(settings, lean):
    """The worker's gate also uses the host's. With ``auto`` the last rank measures the roles;
    a rank that then becomes a sampler receives the topology."""
    recipe = GNNLAB.changed({"schedule": "factored", **settings}).resolved("cuda")
    assert recipe.sampler.topology == "gpu"
    assert [recipe.of_rank(rank).sampler.topology for rank in range(len(lean))] == lean
    assert {"indptr", "indices"} <= set(recipe.shared("cuda"))
    alone = from_plain("gnnlab", recipe.plain(Until.SAMPLE), GNNLAB)
    assert alone.of_rank(0) == alone  # without trainers, one process samples


def test_cpu_ranks_map_one_topology():
    recipe = GNNLAB.changed({"schedule": "factored", "schedule.trainers": 2})
    recipe = recipe.resolved("cpu")
    assert recipe.of_rank(1) == recipe.of_rank(0) == recipe


@pytest.mark.parametrize(
    ("settings", "ratio"),
    [
        ({}, None),
        ({"schedule.standby": True}, 0.3),
        ({"schedule.standby": True, "schedule.standby_ratio": 0.1}, 0.1),
        ({"schedule.standby": True, "features.ratio": "auto"}, "auto"),
    ],
)
def test_samplers_store_only_the_features_of_a_standby_trainer(settings, ratio):
    """With ``auto`` each rank has them until roles are known."""
    shared = {"schedule": "factored", "schedule.trainers": 2, "features.ratio": 0.3, **settings}
    recipe = GNNLAB.changed(shared).resolved("cuda")
    assert recipe.of_rank(0).features == recipe.of_rank(1).features == recipe.features
    features = recipe.of_rank(2).features
    assert features == recipe.features.table if ratio is None else features.ratio == ratio
    measured = GNNLAB.changed({**shared, "schedule.allocation": "auto"}).resolved("cuda")
    assert all(measured.of_rank(r).features == measured.features for r in range(3))
    rank = plan_of(measured.schedule).rank_schedule(2, 3)
    rank.roles = JoinWithRole(trainers=2)
    assert rank.store_spec(measured.features, measured.features) == features
    rank.rank = 1
    assert rank.store_spec(measured.features, measured.features) == measured.features


def test_a_rank_measures_its_memory_with_a_trainers_overlap():
    recipe = GNNLAB.changed({"schedule": "factored", "features.ratio": "auto"})
    alone = plan_of(recipe.resolved("cuda").schedule).alone()
    assert (alone.name, alone.depth) == ("prefetch", 1)
    serial = recipe.changed({"schedule.depth": 0}).resolved("cuda")
    assert plan_of(serial.schedule).alone().name == "serial"


def test_a_rank_with_the_sampler_role_uses_the_recipes_sampler(small_graph):
    requested, built = (native(name).resolved("cpu") for name in ("fastsample", "hop-by-hop"))
    rank = Executor(1, 4)
    rank.roles = JoinWithRole(trainers=2)
    assert rank.sampler_spec(requested, built) == built
    rank.rank = 2
    assert rank.sampler_spec(requested, built) == requested
    worker = WorkerRank.__new__(WorkerRank)
    worker._system = make(small_graph, **SMALL)
    worker._use_sampler(requested)
    assert worker._system.stages.sampler.name == "fastsample"
    assert run(worker._system).ok


def test_unsupported_factored_recipes_are_refused():
    def refused(system="baseline", until="compute", **settings):
        all_settings = {"schedule": "factored", **settings}
        return find(system).resolved(all_settings, "cpu", Until.of(until)).unsupported

    assert not refused()
    assert not refused("gnnlab") and not refused("tsota")
    assert not refused(**{"sampler.frontier": "new"})
    assert "draws that know no rank" in refused("dgl")
    assert "order=as-drawn" in refused(order="greedy")
    assert "features 'match'" in refused(features="match")
    assert "no oracle" in refused("gnnlab", **{"features.policy": "optimal"})
    assert not refused("gnnlab", **{"features.ratio": "auto", "features.memory_gib": 1.0})
    assert "give standby=true" in refused("gnnlab", **{"schedule.standby_ratio": 0.1})
    standby = {"schedule.standby": True, "schedule.standby_ratio": 0.1}
    assert "take features=cache" in refused(**standby) and not refused("gnnlab", **standby)
    assert "needs features=cache" in refused(**{"schedule.marks": True})
    assert "than sieve" in refused("gnnlab", **{"schedule.marks": True, "features.policy": "sieve"})
    assert not refused("gnnlab", **{"schedule.marks": True})
    assert "no oracle" in refused("gnnlab", **{"features.policy": "optimal#10"})
    assert "step=eager" in refused(**{"schedule.step": "padded"})
    assert "give standby=true" in refused(**{"schedule.profit": "published"})
    assert not refused(**{"schedule.profit": "published", "schedule.standby": True})


def test_each_batch_must_be_trained_on_once():
    def one(*numbers, weights="w", reason="", seen=()):
        ran = [TrainedBatch(n, 2, 5, 6, 0.5 + n) for n in numbers]
        return TrainedEpoch(ran, reason, weights, list(seen))

    merged = merge_trained([one(1, seen=[b"b"]), one(0, 2, seen=[b"a", b"c"]), one(weights="")], 3)
    assert merged.reason == "" and merged.losses == [0.5, 1.5, 2.5]
    assert (merged.batches, merged.seeds, merged.edges, merged.nodes) == (3, 6, 15, 18)
    assert sorted(merged.seen) == [b"a", b"b", b"c"]
    assert merge_trained([one(0, 1), one(1, 2)], 3).reason == (
        "batch 2 was trained on 2 times in the epoch"
    )
    assert "batch 3 was trained on 0 times" in merge_trained([one(0), one(1)], 3).reason
    assert "batch 4 is none of the epoch's 3" in merge_trained([one(0, 1), one(2, 3)], 3).reason
    assert "different weights" in merge_trained([one(0), one(1, weights="v")], 2).reason
    assert merge_trained([one(0), one(reason="a fault")], 1).reason == "rank 1: a fault"


class Amplifying:
    """A trainer whose losses amplify a difference of its only weight."""

    def __init__(self, factor):
        self.factor, self.model = factor, torch.nn.Linear(1, 1, bias=False)

    def restore(self, before):
        torch.nn.init.ones_(self.model.weight)

    def jitter(self, seed):
        with torch.no_grad():
            self.model.weight.mul_(1 + seed * 2.0**-22)

    def learn_in_one(self, batches):
        moved = self.factor * (float(self.model.weight.detach()) - 1)
        with torch.no_grad():
            self.model.weight.add_(1 + moved)
        return [1 + moved for _ in batches]


def verification(factor, exact=True, after=2.02):
    job = SimpleNamespace(device=torch.device("cpu"))
    sampler = SimpleNamespace(job=job, sample=lambda seeds, epoch, number: seeds, exact=exact)
    store = SimpleNamespace(forget=lambda: None, load=lambda batch: batch)
    stages = SimpleNamespace(trainer=Amplifying(factor), sampler=sampler, store=store)
    return StepVerification([torch.arange(2)], stages, [], torch.tensor([after]))


@pytest.mark.parametrize(
    ("loss", "after", "fault"),
    [
        (1.02, 2.0, ""),
        (1.1, 2.0, "has a mean loss of 1.1 where"),
        (1.02, 2.02, "led the weights 2.0% of their way off"),
    ],
)
def test_mean_losses_are_compared_if_a_sampler_draws_other_edges(loss, after, fault):
    looked = verification(1.0, exact=False, after=after)
    fault_text = looked.fault(0, [SimpleNamespace(batches=[0])], [loss])
    assert fault_text.startswith(fault) and bool(fault_text) == bool(fault)


@pytest.mark.parametrize("factor,fault", [(1e5, ""), (1.0, "batch 1 has a loss of 1.02 where")])
def test_only_differences_beyond_rounding_are_a_fault(factor, fault):
    looked = verification(factor)
    fault_text = looked.fault(0, [SimpleNamespace(batches=[0])], [1.02])
    assert fault_text.startswith(fault) and bool(fault_text) == bool(fault)
    assert "took steps of 1 batches" in looked.fault(0, [SimpleNamespace(batches=[0])], [1.0, 1.0])
