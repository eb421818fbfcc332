"""Samplers that order the seeds of a batch themselves, as cuGraph does, and report this order."""

from __future__ import annotations

from dataclasses import replace

import fake_cugraph
import pytest
import torch
from torch import Tensor

from gnnbench.certification import behaviour, certify
from gnnbench.certification.certify import int32_ids, structure
from gnnbench.certification.inputs import structure_inputs
from gnnbench.certification.plan import QUICK
from gnnbench.certification.planted import PlantedDrawer, PlantedSubject
from gnnbench.certification.record import FAILS, PASSES
from gnnbench.certification.structure import find_faults
from gnnbench.certification.subject import Drawer, Request, Subject
from gnnbench.core.minibatch import MiniBatch

pytest.importorskip("torch_geometric")
pytestmark = pytest.mark.usefixtures("one_thread")
SEEDS = torch.tensor([5, 0, 8])


def failed(subject: Subject) -> set[str]:
    """Structural properties that small inputs violate, without the graph of isolated nodes."""
    inputs = structure_inputs(torch.int64, wide=False)[:6]
    inputs = [given for given in inputs if given.graph.name != "isolated nodes"]
    return set(find_faults(subject, inputs, ((1,), (2, 3)))[0])


class Reordered(PlantedSubject):
    """Draws for the seeds in ascending order. ``report`` makes the seeds that a batch reports."""

    own_order = True

    @staticmethod
    def report(seeds: Tensor) -> Tensor:
        """The order in which they were drawn."""
        return seeds

    def build(self, request: Request) -> Drawer:
        """Build the sampler."""
        subject = self

        class OwnOrder(PlantedDrawer):
            own_order = subject.own_order

            def draw(self, seeds: Tensor, epoch: int, number: int) -> MiniBatch:
                batch = super().draw(seeds.sort().values, epoch, number)
                return replace(batch, seeds=subject.report(batch.seeds))

        return OwnOrder(self, request)


def test_reported_order_is_accepted():
    assert failed(Reordered()) == set()
    assert behaviour.whole_graph(Reordered()).verdict == PASSES


def test_another_order_fails_a_sampler_that_promises_the_requested_one(monkeypatch):
    monkeypatch.setattr(Reordered, "own_order", False)
    assert "seeds_first" in failed(Reordered())
    assert behaviour.whole_graph(Reordered()).verdict == FAILS


@pytest.mark.parametrize(
    "report",
    [
        lambda seeds: seeds.flip(0),
        lambda seeds: seeds[1:],
        lambda seeds: torch.cat([seeds[:1], seeds[:1], seeds[2:]]),
        lambda seeds: torch.cat([seeds, seeds[:1]]),
        lambda seeds: seeds + 1,
    ],
    ids=["wrong order", "drops", "repeats", "adds", "others"],
)
def test_wrong_report_fails(report, monkeypatch):
    monkeypatch.setattr(Reordered, "report", staticmethod(report))
    assert "seeds_first" in failed(Reordered())


def test_order_of_whole_graph_is_the_reported_one(monkeypatch):
    monkeypatch.setattr(Reordered, "report", staticmethod(lambda seeds: seeds.flip(0)))
    assert behaviour.whole_graph(Reordered()).verdict == FAILS


def test_cugraph_orders_seeds_itself(monkeypatch):
    subject = fake_cugraph.subject(monkeypatch)
    given = structure_inputs(torch.int64, wide=False)[4]
    drawer = subject.build(Request(given.graph, (2,)))
    batch = drawer.draw(SEEDS, 0, 0)
    assert batch.seeds.tolist() == [8, 5, 0] == drawer.seed_order(SEEDS, batch).tolist()
    assert failed(subject) == set()
    assert behaviour.whole_graph(subject).verdict == PASSES


@pytest.mark.parametrize("fault", ["drops", "repeats", "others"])
def test_wrong_seeds_of_cugraph_fail(fault, monkeypatch):
    assert "seeds_first" in failed(fake_cugraph.subject(monkeypatch, fault))


def test_order_of_cugraph_that_contradicts_its_edges_fails(monkeypatch):
    """Labels follow ``n_id``; here the edges have another order of the seeds."""
    subject = fake_cugraph.subject(monkeypatch, "wrong order")
    assert failed(subject) & {"edges", "edge_ids"}
    assert behaviour.whole_graph(subject).verdict == FAILS


def test_batch_that_cannot_be_read_leaves_other_properties_alone(monkeypatch):
    """cuGraph raises an error where no seed has an edge; all other graphs are tested."""
    inputs = certify.structure_inputs
    monkeypatch.setattr(certify, "structure_inputs", lambda *a, **k: inputs(*a, **k)[:5])
    subject = fake_cugraph.subject(monkeypatch)
    entries = {e.name: e for e in structure(subject, QUICK)}
    (only,) = [e for e in entries.values() if e.verdict != PASSES]
    assert only.name == "readable" and "KeyError: 'renumber_map' (isolated nodes" in only.reason
    assert {e.draws for e in entries.values()} == {5 * 7 * 5}
    (narrow,) = int32_ids(subject, QUICK)
    assert narrow.verdict == FAILS and "isolated nodes" in narrow.reason
