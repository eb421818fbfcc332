"""A correct sampler passes; a planted fault of each kind fails the property that it breaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
import torch

from gnnbench.certification import behaviour, distribution, independence
from gnnbench.certification.certify import structure
from gnnbench.certification.inputs import structure_inputs
from gnnbench.certification.plan import EXACT_LEVEL, PAIR_LEVEL, QUICK
from gnnbench.certification.planted import FAULTS, PlantedSubject
from gnnbench.certification.record import FAILS, PASSES, Entry
from gnnbench.certification.structure import ALL_FANOUTS, find_faults
from gnnbench.certification.subject import Subject

PLAN = replace(QUICK, copies=32, calls=24, hub_copies=2, hub_calls=6, pairs=200, epochs=4)
# Sizes that this plan detects nearly always; those of a full certificate are smaller.
SIZES = {
    "first_edge": 1.7, "first_half": 1.5, "tilt": 0.4, "duplicates": 0.02, "fake_edges": 0.01,
    "edge_ids": 0.01, "fewer_edges": 0.02, "lost_neighbours": 0.02, "seeds_last": 1.0,
    "local_ids": 1.0, "replaced": 0.5, "ignored_weights": 0.5, "rows": 0.15, "batches": 0.15,
    "epochs": 0.15, "hops": 0.15, "workers": 0.15, "worker_epochs": 0.15, "ignored_seed": 1,
    "unseeded": 1, "walks": 1.8, "late_edges": 0.01, "uneven_time": 8.0,
}  # fmt: skip
STRUCTURE = ("edges", "edge_ids", "counts", "distinct", "seeds_first", "local_ids")


pytestmark = pytest.mark.usefixtures("one_thread")


def entries(name: str, subject: Subject) -> list[Entry]:
    """The entries of the property and of those that are drawn with it."""
    of_process: dict[str, Callable[[], Iterable[Entry]]] = {
        "rows": lambda: independence.within_process(subject, PLAN),
        "workers": lambda: independence.of_workers(subject, PLAN),
        "seed": lambda: behaviour.determinism(subject),
    }
    groups = {
        "batches": "rows", "epochs": "rows", "hops": "rows", "worker_epochs": "workers",
        "new_seed": "seed",
    }  # fmt: skip
    if (group := groups.get(name, name)) in of_process:
        return list(of_process[group]())
    if name == "time":
        return [behaviour.time_constraint(subject, PLAN)]
    return [getattr(distribution, name)(subject, PLAN)]


def small_structure(subject: Subject) -> set[str]:
    """Structural properties that some of the small inputs violate."""
    inputs = structure_inputs(torch.int64, wide=False)[:6]
    return set(find_faults(subject, inputs, ((3,), (2, 3), *ALL_FANOUTS))[0])


def test_every_fault_has_a_size():
    assert SIZES.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", [f for f, (_, p) in FAULTS.items() if p in STRUCTURE])
def test_structural_fault_is_found(fault: str):
    assert FAULTS[fault][1] in small_structure(PlantedSubject(fault, SIZES[fault]))


def test_lost_neighbours_are_found():
    failed = small_structure(PlantedSubject("lost_neighbours", SIZES["lost_neighbours"]))
    assert failed == {"all_neighbours"}


def test_correct_sampler_has_no_structural_fault():
    assert small_structure(PlantedSubject()) == set()


@pytest.mark.parametrize(
    "fault", [f for f, (_, p) in FAULTS.items() if p not in (*STRUCTURE, "all_neighbours")]
)
def test_fault_fails_its_property_alone(fault: str):
    name = FAULTS[fault][1]
    tested = entries(name, PlantedSubject(fault, SIZES[fault]))
    assert [e.name for e in tested if e.verdict == FAILS] == [name]
    (failed,) = [e for e in tested if e.verdict == FAILS]
    assert failed.reason


@pytest.mark.parametrize(
    "name",
    ["subsets", "inclusion", "scores", "replacement", "weighted", "successive", "walks", "rows",
     "workers", "seed", "time"],
)  # fmt: skip
def test_correct_sampler_passes(name: str):
    for entry in entries(name, PlantedSubject(base=5000)):
        assert entry.verdict == PASSES, entry
        assert entry.level in (0.0, EXACT_LEVEL, PAIR_LEVEL)
        assert (entry.bias is None) == (entry.level == 0)


def test_fault_on_the_whole_graph_is_found():
    lost = behaviour.whole_graph(PlantedSubject("lost_neighbours", 0.01))
    assert lost.verdict == FAILS and "on the blocks is off by" in lost.reason
    assert behaviour.whole_graph(PlantedSubject()).verdict == PASSES


def test_structure_names_every_property_once():
    names = [e.name for e in structure(PlantedSubject(), PLAN)]
    assert len(names) == len(set(names)) and "edge_ids" in names


def test_evidence_of_several_tables_adds_up():
    """Each of four tables is below its own level; their mean is above that of the property."""
    from gnnbench.certification.distribution import _judged
    from gnnbench.certification.inputs import stars
    from gnnbench.certification.rows import Table
    from gnnbench.certification.subject import Request

    graph = stars((2,), 1).graph
    request = Request(graph, (1,), "without-replacement", "planted")
    law, counts = np.array([0.5, 0.5]), np.array([585, 415])
    tables = [Table(request, 2, 1, 0, law, None, 0, counts, 1000) for _ in range(4)]
    assert -math.log(EXACT_LEVEL) < tables[0].log_evidence < math.log(4 / EXACT_LEVEL)
    entry = _judged("inclusion", PlantedSubject(), lambda: tables, "odds")
    assert entry.verdict == FAILS and "585 times" in entry.reason
