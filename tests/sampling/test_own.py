"""Samplers with random numbers of their own as stages: what a recipe and the gate make of them."""

from dataclasses import replace

import pytest
import torch
from compose import make

import gnnbench
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.fault import Fault
from gnnbench.core.minibatch import Block
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.runner import SystemRunner
from gnnbench.validation.law import BY_WEIGHT, WALK, WITH, WITHOUT, named

pytestmark = pytest.mark.usefixtures("one_thread")


class Every(gnnbench.Sampler):
    """All neighbours, at most 90: no choice is left."""

    name = "every"
    law = "without-replacement"
    devices = ("cpu",)

    def draw(self, seeds, *, key, batch, with_positions):
        building = gnnbench.BlockBuilder(seeds, self.frontier)
        for _ in self.fanouts:
            nodes = building.destinations.long()
            counts = self.indptr[nodes + 1] - self.indptr[nodes]
            rows = [self.indices[self.indptr[n] : self.indptr[n + 1]] for n in nodes.tolist()]
            building.add(counts, torch.cat(rows))
        return self.changed(building.batch())

    def changed(self, batch):
        return batch


def stage_of(graph, sampler):
    recipe = replace(BASELINE, sampler=native(sampler)).resolved("cpu")
    cell = make(graph, setup=False, fanouts=(90,)).cell
    system = SystemRunner(cell, graph, recipe)
    system.setup()
    return system.stages.sampler


def test_a_sampler_stands_for_the_picks_of_its_law():
    assert native(Every).resolved("cpu").pick == "every"
    for pick in ("floyd", "reservoir"):
        assert native(Every, pick=pick).resolved("cpu").pick == "every"
    for pick in ("with_replacement", "weighted_alias", "random_walk", "flyod"):
        with pytest.raises(UnsupportedError, match=f"sampler 'every' has no pick '{pick}'; it has"):
            native(Every, pick=pick).resolved("cpu")
    assert [named(p) for p in ("floyd", "with_replacement", "weighted_prefix", "random_walk")] == [
        WITHOUT, WITH, BY_WEIGHT, WALK,
    ]  # fmt: skip
    assert not native(Every).repeats and native("hop-by-hop").repeats


def test_positions_are_found_parallel_edges_and_all(small_graph):
    stage = stage_of(small_graph, Every)
    seeds = small_graph.train_idx[:64]
    batch = stage.checked(seeds, 0)
    (block,) = batch.blocks
    right = [torch.arange(*small_graph.indptr[n : n + 2].tolist()) for n in seeds.tolist()]
    for mine, whole in zip(block.positions.split(block.indptr.diff().tolist()), right, strict=True):
        assert torch.equal(mine.sort().values, whole)
    assert torch.equal(small_graph.indices[block.positions], block.src_nodes[block.indices.long()])
    assert stage.digest([batch.hops()]) == "" and not stage.exact


def block_of(batch, **changes):
    return replace(batch, blocks=[replace(batch.blocks[0], **changes)])


FORMS = {
    "indptr must be torch.int32, it is torch.int64": lambda b: {"indptr": b.indptr.long()},
    "indices must be torch.int32, it is torch.int64": lambda b: {"indices": b.indices.long()},
    "src_nodes must be torch.int32, it is torch.int64": lambda b: {"src_nodes": b.src_nodes.long()},
    "the destinations are not the seeds": lambda b: {"src_nodes": b.src_nodes.flip(0)},
    "an edge is none of the graph's": lambda b: {"indices": b.indices.roll(1)},
}  # fmt: skip


@pytest.mark.parametrize("words", FORMS)
def test_a_batch_of_another_form(words, small_graph):
    class Other(Every):
        name = "other"

        def changed(self, batch):
            return block_of(batch, **FORMS[words](batch.blocks[0]))

    with pytest.raises(Fault, match=words):
        stage_of(small_graph, Other).checked(small_graph.train_idx[:64], 0)
    assert words in gnnbench.check_sampler(Other, small_graph, [90], batch_size=64)


def test_a_parallel_edge_is_drawn_no_oftener_than_it_is_there(small_graph):
    class Twice(Every):
        name = "twice"

        def changed(self, batch):
            block = batch.blocks[0]
            at = block.indptr[:-1].long().repeat_interleave(block.indptr.diff())
            first = block.src_nodes[block.indices[at].long()]
            nodes = torch.cat([block.dst_nodes, first]).unique()
            seeds = torch.isin(nodes, block.dst_nodes)
            nodes = torch.cat([block.dst_nodes, nodes[~seeds]])
            local = (nodes[None] == first[:, None]).int().argmax(1).int()
            same = Block(block.indptr, local, nodes, block.num_dst)
            return replace(batch, blocks=[same])

    with pytest.raises(Fault, match="an edge was drawn twice for one destination"):
        stage_of(small_graph, Twice).checked(small_graph.train_idx[:64], 0)


def test_one_that_claims_the_reference_s_edges_must_show_them(small_graph):
    system = make(small_graph)
    system.stages.sampler.digest = lambda batches: ""
    report = system.check()
    assert not report.ok and "shows no digest" in report.reason


def test_a_sampler_is_tried_on_a_pair_of_arrays(small_graph):
    class Other(Every):
        name = "other"

    class Less(Every):
        name = "less"

        def draw(self, seeds, **others):
            return super().draw(seeds[:-1], **others)

    pair = (small_graph.indptr, small_graph.indices)
    assert gnnbench.check_sampler(Other, pair, [90], batch_size=64) == ""
    assert gnnbench.check_sampler(Less, pair, [90], batch_size=64) != ""
