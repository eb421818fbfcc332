"""GNNLab's sampler on the GPU draws the same as on the CPU, with one table for all batches."""

import numpy as np
import pytest
import torch
from gpu_graphs import Csc, csc_of, skewed

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels import sampler
from gnnbench.kernels.gnnlab import VersionedTable, gnnlab
from gnnbench.kernels.picks import PICKS, PickSpec
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu

IDS = [torch.int32, torch.int64]


def spec_of(pick, csc):
    if pick.startswith("weighted"):
        weights = torch.arange(csc.indices.numel(), dtype=torch.float32) * 7 % 5
        return PickSpec.weighted(pick, csc.indptr, weights)
    return PickSpec.random_walk(4, 3, 0.3) if pick == "random_walk" else PickSpec.of(pick)


def check(csc, seeds, fanouts, spec, table, put, frontier="cumulative", batch=0):
    """Compares one batch on the GPU with the two-step sampler on the CPU."""
    how = {"frontier": frontier, "key": 99, "batch": batch, "with_positions": True}
    if spec.gives_weights:
        how["with_positions"] = False
    right = sampler.hop_by_hop(csc.indptr, csc.indices, seeds, fanouts, pick=spec, **how)
    there = PickSpec(spec.name, tuple(put(t) for t in spec.tables), spec.walk)
    args = (put(csc.indptr), put(csc.indices), seeds.cuda(), fanouts)
    drawn = gnnlab(*args, pick=there, **how, table=table)
    assert same_work(right, drawn, frontier) is None
    for ours, theirs in zip(drawn.blocks, right.blocks, strict=True):
        assert ours.src_nodes.dtype == theirs.src_nodes.dtype
        assert ours.indices.dtype == ours.indptr.dtype == torch.int32
        assert ours.src_nodes.is_cuda
    return drawn


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("pick", PICKS)
def test_same_work_over_many_batches(gpu, pick, dtype, frontier):
    csc = skewed(5000, dtype, 3)
    table = VersionedTable("cuda")
    order = torch.from_numpy(np.random.default_rng(4).permutation(5000))
    for batch in range(6):
        seeds = order[batch * 300 : (batch + 1) * 300]
        check(csc, seeds, [6, 4, 3], spec_of(pick, csc), table, gpu.put, frontier, batch)


@pytest.mark.parametrize("dtype", IDS)
def test_seeds_of_the_other_dtype_and_a_graph_in_locked_memory(gpu, dtype):
    csc = skewed(3000, dtype, 5)
    other = torch.int32 if dtype == torch.int64 else torch.int64
    seeds = torch.arange(0, 3000, 7, dtype=other)
    for put in (gpu.put, torch.Tensor.pin_memory):
        check(csc, seeds, [5, 5], spec_of("weighted_alias", csc), VersionedTable("cuda"), put)


def test_nodes_inserted_by_several_threads_get_one_id(gpu):
    width, rows = 2000, 4000
    indptr = torch.arange(rows + 1) * width
    csc = Csc(indptr, torch.arange(width, dtype=torch.int32).repeat(rows))
    table = VersionedTable("cuda")
    for batch in range(20):
        seeds = torch.arange(rows - 1, rows - 1 - (1 << batch % 12), -1)
        check(csc, seeds, [[width], [20, 3]][batch % 2], PickSpec.of("floyd"), table, gpu.put,
              batch=batch)  # fmt: skip


def test_versions_restart_after_the_last(gpu):
    csc = csc_of(np.full(500, 12), torch.int32, 5)
    table = VersionedTable("cuda")
    floyd = PickSpec.of("floyd")
    check(csc, torch.arange(400), [10, 10], floyd, table, gpu.put)
    table.version = 65533
    seen = []
    for batch in range(4):
        check(csc, torch.arange(499, 300, -1), [3], floyd, table, gpu.put, batch=batch)
        seen.append(table.version)
    assert seen == [65534, 65535, 1, 2]


def test_table_by_hand(ops, gpu):
    # 2 <- 2 4 4, 0 <- 1 2 3
    indptr = torch.tensor([0, 3, 4, 7, 7, 13, 14])
    indices = torch.tensor([1, 2, 3, 0, 2, 4, 4, 0, 1, 2, 3, 4, 5, 0], dtype=torch.int32)
    words = torch.zeros(24, dtype=torch.int64, device="cuda")
    seeds = torch.tensor([2, 0], device="cuda")

    def call(words, version):
        return ops.gnnlab(
            gpu.put(indptr), gpu.put(indices), seeds, [3], "floyd", [], [], "cumulative", 1, 0,
            False, words, version,
        )  # fmt: skip

    blocks_indptr, local, nodes, need = call(words, 7)
    assert blocks_indptr.tolist() == [0, 3, 6]
    assert nodes[local.long()].tolist() == [2, 4, 4, 1, 2, 3]
    assert nodes[:2].tolist() == [2, 0]
    assert need.device.type == "cpu"
    assert need.tolist() == [24]
    versions = {int(w) & (1 << 48) - 1: int(w) >> 48 for w in words[:16].tolist() if w}
    assert versions == dict.fromkeys([0, 1, 2, 3, 4], 7)
    (need,) = call(words[:0].clone(), 8)
    assert need.tolist() == [24]


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_empty_seeds_and_graphs(gpu, frontier):
    csc = csc_of(np.array([0, 2, 1]), torch.int64, 1)
    table = VersionedTable("cuda")
    for seeds in (torch.empty(0, dtype=torch.int64), torch.tensor([0])):
        check(csc, seeds, [2, 2], PickSpec.of("floyd"), table, gpu.put, frontier)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"seeds": [0, 50]}, UsageError, "seeds holds an id outside the graph"),
        ({"seeds": [1, 0, 1]}, UsageError, "seeds holds an id twice"),
        ({"indices": 50}, DataError, "indices holds an id that is not a node"),
        ({"indices": -1}, DataError, "indices holds an id that is not a node"),
    ],
)
def test_errors_are_reported_and_cleared(gpu, changed, error, message):
    csc = csc_of(np.full(50, 8), torch.int32, 7)
    broken = csc.indices.clone()
    broken[40:] = changed.get("indices", broken[40:])
    table = VersionedTable("cuda")
    seeds = torch.tensor(changed.get("seeds", [4, 9]), device="cuda")
    args = (gpu.put(csc.indptr), gpu.put(broken), seeds, [9, 9])
    how = {"pick": "floyd", "frontier": "cumulative", "key": 1, "batch": 0}
    with pytest.raises(error, match=message):
        gnnlab(*args, **how, table=table)
    check(csc, torch.arange(50), [4, 4], PickSpec.of("floyd"), table, gpu.put)


def test_table_must_be_on_the_device_of_the_seeds(gpu):
    csc = csc_of(np.full(5, 2), torch.int32, 7)
    args = (gpu.put(csc.indptr), gpu.put(csc.indices), torch.tensor([0], device="cuda"), [2])
    how = {"pick": "floyd", "frontier": "cumulative", "key": 1, "batch": 0}
    with pytest.raises(UsageError, match="table must be on a CUDA device"):
        gnnlab(*args, **how, table=VersionedTable("cpu"))
