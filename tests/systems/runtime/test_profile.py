"""Profiles of samplers: stages, sizes and kernels."""

import pytest
import torch
from compose import make as compose

from gnnbench.kernels.trace import STAGES, Mark, traced
from gnnbench.schema.cell_internals import STAGES as STAGE_COLUMNS
from gnnbench.schema.column import column_names
from gnnbench.systems.runtime.profile import spanned_bytes

pytestmark = pytest.mark.usefixtures("one_thread")


def make(graph, name="baseline", **changes):
    return compose(graph, name, **{"until": "sample", **changes})


def test_profile_of_the_native_sampler_has_stages_by_hop(small_graph):
    system = make(small_graph)
    profile = system.profile(5)
    assert profile["kernels"] == []
    of_batch, *stages = profile["stages"]
    assert of_batch["stage"] == "batch" and of_batch["hop"] is None and of_batch["batches"] == 20
    assert of_batch["host_s"] > 0 and of_batch["device_s"] is None and "extra_bytes" not in of_batch
    assert set(of_batch) | {"id", "cell"} <= set(column_names(STAGE_COLUMNS))
    assert {(r["stage"], r["hop"]) for r in stages} >= {
        (stage, hop) for stage in ("prepare", "pick", "id_map") for hop in (1, 2, 3)
    }
    for row in stages:
        assert row["stage"] in STAGES and row["host_s"] >= 0 and row["device_s"] is None
    first = next(r for r in stages if (r["stage"], r["hop"]) == ("pick", 1))
    assert first["nodes"] == 64  # destinations: the seeds of a full batch
    picks = [r["edges"] for r in stages if r["stage"] == "pick"]
    assert sum(picks) == pytest.approx(of_batch["edges"], rel=0.1)  # medians


def test_spanned_bytes_of_a_batch(small_graph):
    system = make(small_graph)
    drawn = system.stages.sampler.sample(small_graph.train_idx[:64].int(), 0, 0)
    size = sum(
        4 * (b.indptr.numel() + b.indices.numel() + b.src_nodes.numel()) for b in drawn.blocks
    )
    assert spanned_bytes(drawn.tensors()) <= size
    separate = [t.clone() for t in drawn.tensors()]
    assert spanned_bytes(separate) == size


def test_spanned_bytes_counts_a_storage_once():
    whole = torch.zeros(100, dtype=torch.int32)
    assert spanned_bytes([whole[:10], whole[5:20], whole[:0]]) == 80
    assert spanned_bytes([whole[10:20], whole[90:]]) == 360
    assert spanned_bytes([]) == 0


@pytest.mark.parametrize("name", ["dgl", "pyg"])
def test_profile_of_a_foreign_sampler_has_complete_calls_only(name, small_graph):
    (row,) = make(small_graph, name).profile(5)["stages"]
    assert row["stage"] == "batch" and row["edges"] > 0 and row["nodes"] > 64


def test_cell_beyond_sampling_has_no_sampler_profile(small_graph):
    assert all(make(small_graph, until=u).profile(5) == {} for u in ("memory_io", "compute"))


def test_trace_ends_with_its_call(small_graph):
    system = make(small_graph)
    seeds = small_graph.train_idx[:64].int()
    drawn, marks = traced(lambda: system.stages.sampler.sample(seeds, 0, 0))
    assert drawn.sampled_edges > 0 and all(isinstance(m, Mark) for m in marks) and marks
    with pytest.raises(ZeroDivisionError):
        traced(lambda: 1 / 0)
    assert traced(lambda: None) == (None, [])
