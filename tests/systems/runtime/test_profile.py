"""The look inside samples: stages, sizes, kernels."""

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


def test_stages_of_the_native_sampler_by_hop(small_graph):
    system = make(small_graph)
    found = system.profile(5)
    assert found["kernels"] == []
    whole, *stages = found["stages"]
    assert whole["stage"] == "batch" and whole["hop"] is None and whole["batches"] == 20
    assert whole["host_s"] > 0 and whole["device_s"] is None and "extra_bytes" not in whole
    assert set(whole) | {"id", "cell"} <= set(column_names(STAGE_COLUMNS))
    assert {(r["stage"], r["hop"]) for r in stages} >= {
        (stage, hop) for stage in ("prepare", "pick", "id_map") for hop in (1, 2, 3)
    }
    for row in stages:
        assert row["stage"] in STAGES and row["host_s"] >= 0 and row["device_s"] is None
    first = next(r for r in stages if (r["stage"], r["hop"]) == ("pick", 1))
    assert first["nodes"] == 64  # destinations: the seeds of a whole batch
    picks = [r["edges"] for r in stages if r["stage"] == "pick"]
    assert sum(picks) == pytest.approx(whole["edges"], rel=0.1)  # medians


def test_sizes_are_those_of_the_blocks(small_graph):
    system = make(small_graph)
    drawn = system.stages.sampler.sample(small_graph.train_idx[:64].int(), 0, 0)
    size = sum(
        4 * (b.indptr.numel() + b.indices.numel() + b.src_nodes.numel()) for b in drawn.blocks
    )
    assert spanned_bytes(drawn.tensors()) <= size
    separate = [t.clone() for t in drawn.tensors()]
    assert spanned_bytes(separate) == size


def test_views_of_one_storage_count_once():
    whole = torch.zeros(100, dtype=torch.int32)
    assert spanned_bytes([whole[:10], whole[5:20], whole[:0]]) == 80
    assert spanned_bytes([whole[10:20], whole[90:]]) == 360
    assert spanned_bytes([]) == 0


@pytest.mark.parametrize("name", ["dgl", "pyg"])
def test_a_foreign_sampler_has_whole_calls_only(name, small_graph):
    (row,) = make(small_graph, name).profile(5)["stages"]
    assert row["stage"] == "batch" and row["edges"] > 0 and row["nodes"] > 64


def test_a_cell_with_a_model_is_not_looked_into(small_graph):
    assert all(make(small_graph, until=u).profile(5) == {} for u in ("memory_io", "compute"))


def test_a_trace_ends_with_its_call(small_graph):
    system = make(small_graph)
    seeds = small_graph.train_idx[:64].int()
    drawn, marks = traced(lambda: system.stages.sampler.sample(seeds, 0, 0))
    assert drawn.sampled_edges > 0 and all(isinstance(m, Mark) for m in marks) and marks
    with pytest.raises(ZeroDivisionError):
        traced(lambda: 1 / 0)
    assert traced(lambda: None) == (None, [])
