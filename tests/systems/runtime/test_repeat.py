"""The gate measures whether a step gives the same bits twice; some aggregations declare not to."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from compose import TRAINED, make, run

from gnnbench.kernels.aggregate_scatter import aggregate_scatter, attend_scatter
from gnnbench.models.aggregation import AggregateSpec, Scatter
from gnnbench.models.native import Native


@dataclass(frozen=True)
class Shuffled(Scatter):
    """Edges are added in another order each time, as atomics may."""

    name: ClassVar[str] = "shuffled"

    def build(self):
        def aggregate(block, x, mode, edge_weight=None):
            drawn = torch.randperm(block.num_edges)
            drawn = drawn[torch.argsort(_dst(block)[drawn], stable=True)]  # within each row
            other = replace(block, indices=block.indices[drawn])
            return aggregate_scatter(other, x, mode, edge_weight)

        return Native(aggregate, attend_scatter)


@dataclass(frozen=True)
class Lucky(Scatter):
    """The same bits here, and not always."""

    name: ClassVar[str] = "lucky"
    by_chance: ClassVar[tuple[str, ...]] = ("cpu",)


def _dst(block):
    return torch.arange(block.num_dst).repeat_interleave(block.indptr.diff().long())


def planted(graph, aggregate: AggregateSpec):
    system = make(graph, setup=False, fanouts=(10, 10))
    system.recipe = replace(system.recipe, aggregate=aggregate)
    system.setup()
    return system


@pytest.mark.parametrize("name,model", TRAINED)
def test_a_step_is_repeated_and_the_model_is_restored(name, model, small_graph):
    system, other = (make(small_graph, name, model=model) for _ in range(2))
    report = system.check()
    assert report.ok, report.reason
    assert report.deterministic is True
    for one, right in zip(system.trainer.kept(), other.trainer.kept(), strict=True):
        assert torch.equal(one, right)
    assert run(system).loss == pytest.approx(run(other).loss, rel=0.1)


def test_sums_in_another_order_each_time_are_detected(small_graph):
    report = planted(small_graph, Shuffled()).check()
    assert report.ok, report.reason
    assert report.deterministic is False
    assert planted(small_graph, Scatter()).check().deterministic is True


def test_equal_bits_of_atomics_do_not_count(small_graph):
    report = planted(small_graph, Lucky()).check()
    assert report.ok and report.deterministic is False


def test_a_system_without_training_has_no_step_to_repeat(small_graph):
    assert make(small_graph, until="memory_io").check().deterministic is None


def test_a_failed_gate_leaves_determinism_unknown(small_graph):
    system = make(small_graph)
    with torch.no_grad():
        next(system.trainer.model.parameters()).mul_(2)
    report = system.check()
    assert not report.ok and report.deterministic is None
