"""Certificates of samplers on a GPU; those of packages that are missing are skipped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gnnbench.certification.certify import certify
from gnnbench.certification.plan import QUICK
from gnnbench.certification.subjects import subject_of
from gnnbench.core.errors import MissingError

PLAN = replace(QUICK, copies=32, calls=24, hub_copies=2, hub_calls=6, pairs=200, epochs=4)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["hop-by-hop", "fused-map", "fastsample", "pgsampler"])
def test_own_sampler_passes_on_a_gpu(name: str):
    assert [(e.name, e.reason) for e in certify(subject_of(name, "cuda", {}), PLAN).failed] == []


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["dgl", "graphbolt", "wholegraph", "cugraph-pyg"])
def test_peer_is_certified_on_a_gpu(name: str):
    """Whatever fails there, every batch can be read."""
    try:
        subject = subject_of(name, "cuda", {})
    except MissingError as error:
        pytest.skip(str(error))
    entries = {e.name: e for e in certify(subject, PLAN).entries}
    assert entries["readable"].verdict == "passes", entries["readable"].reason
