"""Certificates of samplers on a GPU; those of packages that are missing are skipped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gnnbench.certification.certify import certify
from gnnbench.certification.isolated import certify_isolated
from gnnbench.certification.plan import QUICK
from gnnbench.certification.subjects import subject_of
from gnnbench.core.errors import MissingError

PLAN = replace(QUICK, copies=32, calls=24, hub_copies=2, hub_calls=6, pairs=200, epochs=4)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["hop-by-hop", "fused-map", "fastsample", "pgsampler"])
def test_own_sampler_passes_on_a_gpu(name: str):
    assert [(e.name, e.reason) for e in certify(subject_of(name, "cuda", {}), PLAN).failed] == []


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name,known",
    [
        ("dgl", ""),
        ("graphbolt", ""),
        ("wholegraph", "isolated nodes"),
        ("cugraph-pyg", "isolated nodes"),
    ],
)
def test_peer_is_certified_on_a_gpu(name: str, known: str):
    """Whatever fails there, batches can be read, except for ``known`` faults, and begin with their
    seeds.

    In a process of its own: GraphBolt 2.5 ends it by a segmentation fault.
    """
    try:
        subject_of(name, "cuda", {})
    except MissingError as error:
        pytest.skip(str(error))
    entries = {e.name: e for e in certify_isolated(name, "cuda", {}, PLAN).entries}
    readable = entries["readable"]
    assert readable.verdict == ("fails" if known else "passes"), readable.reason
    assert known in readable.reason
    assert entries["seeds_first"].verdict == "passes", entries["seeds_first"].reason
