"""Every sampler in loader workers that inherit nothing from their parent: spawn, forkserver."""

import multiprocessing
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from adapter_graphs import dgl, needs_dgl
from sampling_cases import CASES, NAMES, build

from gnnbench.datasets.store.arrays import write_graph
from gnnbench.datasets.store.reader import open_graph

pytest.importorskip("torch_geometric")

from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

FANOUTS = [6, 5]
EPOCH = 3
BATCH = 10  # of 200 seeds: 20 batches


def store(graph, folder):
    arrays = ("indptr", "indices", "features", "labels", "train_idx", "val_idx", "test_idx")
    return write_graph(
        folder, name=graph.name, num_classes=graph.num_classes,
        **{array: getattr(graph, array).numpy() for array in arrays},
    )  # fmt: skip


def sent(value):
    """Send an object as to another process; this process receives it."""
    return ForkingPickler.loads(bytes(ForkingPickler.dumps(value)))


# A spawned process imports torch and a framework for seconds: one sampler suffices. Workers of a
# fork server inherit nothing either, and import their sampler themselves. PyG's and DGL's
# workers get each sampler with a stored graph and with tensors, in turn.
FORKSERVER = [("forkserver", name, nth % 2 == 0) for nth, name in enumerate(NAMES)]
PYG_STARTS = [("spawn", NAMES[0], True), *FORKSERVER]
DGL_STARTS = [(start, name, not stored) for start, name, stored in FORKSERVER]


@pytest.fixture
def context(start):
    """How workers start; the server of forkserver imports once what all of them need."""
    context = multiprocessing.get_context(start)
    if start == "forkserver":
        needed = ("torch_geometric.loader", "gnnbench.sampling.pyg_adapter")
        dgl_too = "tests.sampling.adapter_graphs"
        context.set_forkserver_preload([*needed, dgl_too])
    return context


@pytest.fixture
def graph(stored, small_graph, tmp_path):
    """A graph of the store, or tensors: both are sent alike."""
    return open_graph(store(small_graph, tmp_path / "small")) if stored else small_graph


def workers(context):
    """How many processes, and how they start."""
    number = 1 if context.get_start_method() == "spawn" else 2
    return {"num_workers": number, "multiprocessing_context": context}


def pyg_batches(graph, adapter, context=None):
    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    data = Data(edge_index=torch.stack([graph.indices.long(), dst]), num_nodes=graph.num_nodes)
    seeds = torch.tensor(graph.train_idx.tolist())
    how = {} if context is None else workers(context)
    adapter.set_epoch(EPOCH)
    return [
        (batch.n_id[: batch.batch_size].tolist(), sorted(batch.e_id.tolist()))
        for batch in NodeLoader(data, adapter, input_nodes=seeds, batch_size=BATCH, **how)
    ]


@pytest.mark.parametrize(("start", "name", "stored"), PYG_STARTS)
def test_pyg_workers_draw_the_batches_of_one_process(name, graph, context):
    how = {"frontier": "cumulative"} if name == "pgsampler" else {}
    adapters = [build(name, graph, FANOUTS, seed=5, **how).as_pyg() for _ in range(2)]
    expected = pyg_batches(graph, adapters[0])
    assert len(expected) == 20
    assert pyg_batches(graph, adapters[1], context) == expected


@needs_dgl
@pytest.mark.parametrize(("start", "name", "stored"), DGL_STARTS)
def test_dgl_workers_draw_the_batches_of_the_sampler(name, graph, context):
    csc = (graph.indptr, graph.indices.long(), torch.empty(0, dtype=torch.int64))
    g = dgl.graph(("csc", tuple(t.clone() for t in csc)), num_nodes=graph.num_nodes)
    adapter = build(name, graph, FANOUTS, seed=5).as_dgl()
    adapter.set_epoch(EPOCH)
    batches = dgl.dataloading.DataLoader(
        g, torch.tensor(graph.train_idx.tolist()), adapter, batch_size=BATCH, **workers(context)
    )
    sampler = build(name, graph, FANOUTS, seed=5, with_positions=True)
    count = 0
    order = graph.train_idx.tolist()
    for _, seeds, blocks in batches:  # each worker has a contiguous share of the batches
        expected = sampler.sample(seeds, EPOCH, order.index(int(seeds[0])) // BATCH)
        for ours, block in zip(blocks, expected.blocks, strict=True):
            assert sorted(ours.edata[dgl.EID].tolist()) == sorted(block.positions.tolist())
        count += len(seeds)
    assert count == 200


def tensors_in(value):
    """Tensors of an object, also of nested gnnbench objects."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part)
    elif type(value).__module__.startswith("gnnbench.") and hasattr(value, "__dict__"):
        yield from tensors_in(list(vars(value).values()))


@pytest.mark.parametrize("name", NAMES)
def test_a_sent_sampler_shares_only_the_graph(name, small_graph):
    """Only the graph, which is read-only, is in shared memory."""
    sampler = build(name, small_graph, FANOUTS, seed=5)
    sampler.sample([1, 2])
    other = sent(sampler)
    read = {other.setting.indptr.data_ptr(), other.setting.indices.data_ptr()}
    assert not any(t.is_shared() for t in tensors_in(other) if t.data_ptr() not in read)


@pytest.mark.parametrize(("name", "pick"), sorted({(name, pick) for name, pick, _ in CASES}))
def test_a_sent_sampler_is_rebuilt_with_the_same_arguments(name, pick, small_graph, tmp_path):
    options = {"fetch_size": 3} if name == "pgsampler" else {}
    graph = open_graph(store(small_graph, tmp_path / "small"))
    sampler = build(name, graph, FANOUTS, pick, seed=7, with_positions=True, **options)
    other = sent(sampler)
    assert type(other) is type(sampler)
    assert (other.fanouts, other.pick, other.frontier) == (sampler.fanouts, pick, sampler.frontier)
    assert other._built_with[1] == options
    for number in range(2):
        ours, theirs = (s.sample([3, 9, 4], 1, number) for s in (sampler, other))
        for a, b in zip(ours.blocks, theirs.blocks, strict=True):
            name = "weights" if pick == "random_walk" else "positions"
            assert sorted(getattr(a, name).tolist()) == sorted(getattr(b, name).tolist())
