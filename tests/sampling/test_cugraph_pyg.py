"""cuGraph-PyG's stage with a fake cuGraph-PyG: its calls, and batches by hand."""

import sys
import types

import numpy as np
import pytest
import torch
from compose import make

from gnnbench.certification.subjects import subject_of
from gnnbench.core.cell import Until
from gnnbench.core.errors import MissingError
from gnnbench.kernels.cugraph_import import CuGraph, cugraph_missing
from gnnbench.kernels.wholegraph_import import WholeMemory
from gnnbench.sampling import cugraph_pyg
from gnnbench.sampling.cugraph_pyg import CuGraphPygBatch, CuGraphSampler, CuGraphStage
from gnnbench.systems.runtime.find import find

CPU = torch.device("cpu")


def data(n_id, row, col, e_id, nodes, edges, seeds):
    """A ``Data`` of cuGraph-PyG 26.10, as far as it is read."""
    return types.SimpleNamespace(
        n_id=torch.tensor(n_id), edge_index=torch.tensor([row, col]), e_id=torch.tensor(e_id),
        num_sampled_nodes=torch.tensor(nodes), num_sampled_edges=torch.tensor(edges),
        batch_size=seeds,
    )  # fmt: skip


# Seeds 5 and 2, which cuGraph puts in its own order. 2 has the neighbours 5 and 7, 5 has none; then
# of 7 the neighbours 9 and 2. cuGraph counts one seed only: the last one has no edge.
BATCH = data([2, 5, 7, 9], [1, 2, 3, 0], [0, 0, 2, 2], [11, 12, 20, 21], [1, 2, 1], [2, 2], 2)


def test_seeds_are_in_the_order_of_the_nodes():
    batch = CuGraphPygBatch(4, BATCH, 2, CPU)
    assert batch.number == 4 and batch.seeds.tolist() == [2, 5]
    assert batch.input_nodes.tolist() == [2, 5, 7, 9]


def test_sizes_count_a_seed_without_neighbours():
    sizes = CuGraphPygBatch(4, BATCH, 2, CPU).sizes()
    assert [(dst.tolist(), edges) for dst, edges in sizes.hops] == [([2, 5], 2), ([7], 2)]
    assert (sizes.num_nodes, sizes.num_edges, sizes.new) == (4, 4, True)


def test_hop_without_new_nodes():
    """Edges among seeds: cuGraph reports -1 new nodes, for the largest source is the first seed."""
    between = data([2, 5, 7], [0, 2, 2], [1, 1, 1], [3, 4, 5], [2, -1, 2], [1, 2], 2)
    sizes = CuGraphPygBatch(0, between, 2, CPU).sizes()
    assert [(dst.tolist(), edges) for dst, edges in sizes.hops] == [([2, 5], 1), ([], 2)]
    assert sizes.num_nodes == 3


def test_edges_by_their_ends_and_positions():
    first, second = CuGraphPygBatch(4, BATCH, 2, CPU).hops()
    assert np.array_equal(first.dst, [2, 5]) and np.array_equal(second.dst, [7])
    assert np.array_equal(first.edge_dst, [2, 2]) and np.array_equal(first.edge_src, [5, 7])
    assert np.array_equal(second.edge_dst, [7, 7]) and np.array_equal(second.edge_src, [9, 2])
    assert np.array_equal(first.positions, [11, 12]) and np.array_equal(second.positions, [20, 21])


def test_blocks_of_both_forms():
    batch = CuGraphPygBatch(4, BATCH, 2, CPU)
    outer, inner = batch.blocks
    assert (outer.num_dst, outer.num_src, inner.num_dst, inner.num_src) == (3, 4, 2, 3)
    assert outer.indptr.tolist() == [0, 2, 2, 4] and outer.indices.tolist() == [1, 2, 3, 0]
    assert inner.indptr.tolist() == [0, 2, 2] and inner.src_nodes.tolist() == [2, 5, 7]
    outer, inner = batch.pyg_blocks
    assert outer.edge_index.tolist() == [[1, 2, 3, 0], [0, 0, 2, 2]]
    assert (inner.num_src, inner.num_dst, inner.edge_index.tolist()) == (3, 2, [[1, 2], [0, 0]])


class FakeGraph:
    """Records the loaders that a stage makes."""

    def __init__(self, graph, allocator, weighted=False):
        self.loaders, self.closed = [], False

    def batches(self, seeds, fanouts, batch_size, replace, seeds_per_call):
        sizes = [part.tolist() for part in seeds.split(batch_size)]
        self.loaders.append((sizes, fanouts, seeds_per_call))
        return iter(
            [data(part, [], [], [], [len(part), 0, 0], [0, 0], len(part)) for part in sizes]
        )

    def close(self):
        self.closed = True


@pytest.fixture
def stage(small_graph, monkeypatch):
    """Builds a stage over ``FakeGraph`` without a GPU."""
    monkeypatch.setattr(cugraph_pyg, "CuGraph", FakeGraph)
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    job = make(small_graph).job
    return lambda **options: CuGraphStage(CuGraphSampler(**options).resolved("cuda"), job)


def seeds_of(*sizes):
    return list(torch.arange(sum(sizes)).split(sizes))


def test_an_epoch_is_one_loader(stage):
    built = stage()
    batches = seeds_of(3, 3, 2)
    built.expect(0, batches)
    drawn = [built.sample(seeds, 0, number) for number, seeds in enumerate(batches)]
    assert [batch.seeds.tolist() for batch in drawn] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [batch.number for batch in drawn] == [0, 1, 2]
    ((parts, fanouts, per_call),) = built._graph.loaders
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7]] and per_call is None
    assert fanouts == list(built.job.cell.fanouts)
    built.close()
    assert built._graph.closed


def test_sizes_that_no_loader_can_cut_begin_another_one(stage):
    built = stage()
    batches = seeds_of(2, 3, 1, 3)
    built.expect(0, batches)
    drawn = [built.sample(seeds, 0, number).seeds.tolist() for number, seeds in enumerate(batches)]
    assert drawn == [batch.tolist() for batch in batches]
    assert [parts for parts, _, _ in built._graph.loaders] == [
        [[0, 1]], [[2, 3, 4], [5]], [[6, 7, 8]],
    ]  # fmt: skip


def test_batches_out_of_turn(stage):
    built = stage()
    batches = seeds_of(2, 2, 2)
    built.expect(0, batches)
    assert built.sample(batches[0], 0, 0).seeds.tolist() == [0, 1]
    assert built.sample(torch.tensor([9]), 0, 7).seeds.tolist() == [9]
    assert built.sample(batches[2], 0, 2).seeds.tolist() == [4, 5]
    assert built.sample(batches[1], 0, 1).seeds.tolist() == [2, 3]


@pytest.mark.parametrize(("given", "passed"), [(0, None), (1, 3), (8, 24)])
def test_seeds_of_a_call(given, passed, stage):
    built = stage(batches_per_call=given)
    built.sample(torch.arange(3), 0, 0)
    assert built._graph.loaders[0][2] == passed


@pytest.fixture
def calls(monkeypatch):
    """Installs a fake cuGraph-PyG; returns its calls."""
    calls = []

    class Store(dict):
        def put_edge_index(self, matrix, *attributes):
            calls.append(("edges", *(end.tolist() for end in matrix), *attributes))

        def finalize(self, weight_attr=None):
            calls.append(("finalize", weight_attr and (dict(weight_attr[0]), weight_attr[1])))

    def loader(stores, **arguments):
        calls.append(("loader", arguments))
        return iter(())

    modules = {
        "cugraph_pyg.data": {"GraphStore": Store, "FeatureStore": Store},
        "cugraph_pyg.loader": {"NeighborLoader": loader},
        "cugraph_pyg.tensor": {
            "DistTensor": types.SimpleNamespace(
                from_tensor=lambda values, device, backend: values
            ),
            "DistMatrix": lambda src, backend, format: src,
        },
        "rmm.mr": {
            "get_current_device_resource": lambda: "before",
            "set_current_device_resource": lambda resource: calls.append(("resource", resource)),
            "CudaAsyncMemoryResource": lambda: "pool", "CudaMemoryResource": lambda: "malloc",
        },
    }  # fmt: skip
    for name, members in modules.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name.partition(".")[0], types.ModuleType("parent"))
        monkeypatch.setitem(sys.modules, name, module)
    whole = types.SimpleNamespace(close=lambda: calls.append(("close",)))
    monkeypatch.setattr(WholeMemory, "share", lambda: whole)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    return calls


def test_edges_go_from_sources_to_destinations(small_graph, calls):
    graph = CuGraph(small_graph, "async")
    dst = torch.arange(small_graph.num_nodes).repeat_interleave(small_graph.indptr.diff())
    size = (small_graph.num_nodes,) * 2
    assert calls == [
        ("resource", "pool"),
        ("edges", small_graph.indices.tolist(), dst.tolist(), ("node", "to", "node"), "coo", False,
         size),
        ("finalize", None),
    ]  # fmt: skip
    calls.clear()
    list(graph.batches(torch.tensor([4, 1], dtype=torch.int32), [3, 2], 2, seeds_per_call=64))
    ((_, arguments),) = calls
    assert arguments.pop("input_nodes").dtype == torch.int64
    assert arguments == {
        "num_neighbors": [3, 2], "replace": False, "weight_attr": None, "batch_size": 2,
        "shuffle": False, "local_seeds_per_call": 64,
    }  # fmt: skip
    calls.clear()
    graph.close()
    assert calls == [("resource", "before"), ("close",)]


def test_system_needs_a_gpu():
    system = find("cugraph-pyg")
    assert "does not run on cpu" in system.resolved({}, "cpu", Until.COMPUTE).unsupported
    resolved = system.resolved({"sampler.batches_per_call": 64}, "cuda", Until.COMPUTE)
    assert not resolved.unsupported
    assert resolved.recipe["sampler"] == {
        "name": "cugraph-pyg", "pick": "cugraph-pyg", "frontier": "new", "batches_per_call": 64,
        "allocator": "async",
    }  # fmt: skip
    assert resolved.recipe["features"]["name"] == "wholegraph"
    assert resolved.recipe["aggregate"]["name"] == "pyg"


def test_missing_cugraph_has_an_installation_hint():
    missing = cugraph_missing()
    if missing is None:
        pytest.skip("cuGraph-PyG is here")
    assert missing.reason and missing.fix
    with pytest.raises(MissingError, match="'cugraph-pyg' cannot be certified"):
        subject_of("cugraph-pyg", "cuda", {})
