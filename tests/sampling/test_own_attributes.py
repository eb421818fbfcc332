"""Samplers, stores and recipes of third parties: what cannot be used is refused by name."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

import gnnbench
from gnnbench.core.errors import UsageError
from gnnbench.core.option import Option
from gnnbench.features.base import FeatureStore
from gnnbench.features.spec import StoreSpec
from gnnbench.systems.baseline import BASELINE


def draw(self, seeds, *, key, batch, with_positions):
    """The first neighbours of each node, which is no law."""
    building = gnnbench.BlockBuilder(seeds, self.frontier)
    for fanout in self.fanouts:
        nodes = building.destinations.long()
        begin = self.indptr[nodes]
        counts = (self.indptr[nodes + 1] - begin).clamp(max=fanout)
        offsets = torch.cat([torch.arange(int(count)) for count in counts])
        building.add(counts, self.indices[begin.repeat_interleave(counts) + offsets])
    return building.batch()


def sampler(**attributes):
    given = {"law": "without-replacement", "devices": ("cpu",), "draw": draw, **attributes}
    return type("Odd", (gnnbench.Sampler,), given)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"name": 3}, "Odd.name must be a text that is not empty, not 3"),
        ({"name": ""}, "Odd.name must be a text that is not empty"),
        ({"devices": "cpu"}, "devices must be a tuple of cpu, cuda, not 'cpu'"),
        ({"devices": ("tpu",)}, r"devices must be a tuple of cpu, cuda, not \('tpu',\)"),
        ({"frontiers": ()}, "frontiers must be a tuple of cumulative, new"),
        ({"frontiers": ("both",)}, "frontiers must be a tuple of cumulative, new"),
        ({"picks": ("mine",)}, "picks must be a tuple of reservoir"),
        ({"options": [Option("a", 1, "")]}, "options must be a dict of name to Option"),
        ({"options": {"b": Option("a", 1, "")}}, r"options\['b'\] must be an Option of that name"),
        ({"options": {"a b": Option("a b", 1, "")}}, "a Python identifier"),
        ({"options": {"a": Option("a", [1], "")}}, "the default of 'a' must be immutable"),
    ],
)
def test_attributes_of_a_sampler(attributes, words):
    with pytest.raises(UsageError, match=words):
        sampler(**attributes)


def test_a_name_of_ours_does_not_exempt_a_sampler_from_its_law(small_graph):
    with pytest.raises(UsageError, match="'fused-map' is a name of gnnbench's own"):
        gnnbench.check_sampler(sampler(name="fused-map"), small_graph, [4, 3])
    assert "by their place in the row" in gnnbench.check_sampler(sampler(), small_graph, [4, 3])


def test_a_sampler_without_a_law_is_told_to_name_it(small_graph):
    with pytest.raises(UsageError, match="name the sampler's law"):
        gnnbench.check_sampler(sampler(law=""), small_graph, [4, 3])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1], torch.tensor([2])), "counts must be a tensor, not list"),
        ((torch.tensor([1.5]), torch.tensor([2])), "counts must be int32 or int64"),
        ((torch.tensor([[1]]), torch.tensor([2])), "counts must be int32 or int64 in one"),
        ((torch.tensor([1]), torch.tensor([2.7])), "neighbours must be int32 or int64"),
        ((torch.tensor([-1]), torch.tensor([2])), "counts holds -1"),
        ((torch.tensor([1]), torch.tensor([2]), torch.tensor([0.0])), "positions must be int"),
    ],
)
def test_what_is_added_to_blocks(arguments, words):
    with pytest.raises(UsageError, match=words):
        gnnbench.BlockBuilder(torch.tensor([0])).add(*arguments)


@pytest.mark.parametrize("frontier", ["new", "cumulative"])
@pytest.mark.parametrize("first", [True, False])
def test_positions_of_some_hops_are_refused(frontier, first):
    building = gnnbench.BlockBuilder(torch.tensor([0]), frontier)
    at = torch.tensor([0])
    building.add(torch.tensor([1]), torch.tensor([2]), at if first else None)
    counts = torch.ones(building.destinations.numel(), dtype=torch.int64)
    with pytest.raises(UsageError, match="positions are given of some hops"):
        building.add(counts, counts + 3, None if first else counts)


def test_blocks_of_a_frontier_that_there_is_not():
    with pytest.raises(UsageError, match="frontier must be 'cumulative' or 'new', not 'both'"):
        gnnbench.BlockBuilder(torch.tensor([0]), "both")


class Store(FeatureStore):
    """What ``change`` makes of the rows."""

    def __init__(self, job, change):
        super().__init__(job)
        self.change = change

    def load(self, batch):
        return self.change(self.job.graph.features[batch.input_nodes.long()])


def system(change=None, build=None):
    @dataclass(frozen=True)
    class Spec(StoreSpec):
        name: ClassVar[str] = "odd-store"
        devices: ClassVar[tuple[str, ...]] = ("cpu",)

        def build(self, job):
            return build(job) if build else Store(job, change)

    return replace(BASELINE, name="odd", features=Spec())


@pytest.mark.parametrize(
    "change", [lambda t: None, lambda t: t.to_sparse(), lambda t: t.to("meta"), lambda t: t.numpy()]
)
def test_rows_that_are_no_dense_tensor_are_a_fault(change, small_graph):
    words = gnnbench.check_system(system(change), small_graph, [3])
    assert "gathered feature rows must be a dense tensor" in words


def test_a_store_that_is_none(small_graph):
    with pytest.raises(UsageError, match="features 'odd-store' must build a store, not NoneType"):
        gnnbench.check_system(system(build=lambda job: None), small_graph, [3])


def test_a_stage_without_a_name():
    @dataclass(frozen=True)
    class Nameless(StoreSpec):
        def build(self, job):
            return None

    with pytest.raises(UsageError, match="the class Nameless must have a 'name'"):
        Nameless()


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"dtype": "float16"}, "dtype cannot be float16; it is float32"), ({"name": 3}, "not 3")],
)
def test_fields_of_a_recipe(changed, words):
    with pytest.raises(UsageError, match=words):
        replace(BASELINE, **changed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"recipe": {}}, "recipe must be a Recipe, not dict"),
        ({"graph": (torch.zeros(1), torch.zeros(0))}, "graph must be what gnnbench.load_dataset"),
        ({"fanouts": []}, "fanouts is empty"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"until": "later"}, "unknown until 'later'; known are compute"),
    ],
)
def test_arguments_of_check_system(arguments, words, small_graph):
    with pytest.raises(UsageError, match=words):
        gnnbench.check_system(**{"recipe": BASELINE, "graph": small_graph, **arguments})


def test_arguments_of_check_sampler(small_graph):
    pair = small_graph.indptr.numpy(), small_graph.indices.numpy()
    assert gnnbench.check_sampler("hop-by-hop", pair, [3]) == ""
    with pytest.raises(UsageError, match="sampler must be a name"):
        gnnbench.check_sampler(gnnbench.build_sampler("hop-by-hop", pair, [3]), pair, [3])
