"""Every sampler in loader workers that start with nothing of their parent's: spawn, forkserver."""

import multiprocessing
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from sampling_cases import CASES, NAMES, build

from gnnbench.core.errors import MissingError
from gnnbench.datasets.store.arrays import write_graph
from gnnbench.datasets.store.reader import open_graph
from gnnbench.kernels.dgl_import import require_dgl

pytest.importorskip("torch_geometric")

from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

try:
    dgl = require_dgl()
except MissingError:
    dgl = None

FANOUTS = [6, 5]
EPOCH = 3
BATCH = 10  # of 200 seeds: 20 batches


def store(graph, folder):
    arrays = ("indptr", "indices", "features", "labels", "train_idx", "val_idx", "test_idx")
    return write_graph(
        folder, name=graph.name, num_classes=graph.num_classes,
        **{array: getattr(graph, array).numpy() for array in arrays},
    )  # fmt: skip


def sent(thing):
    """What another process gets; this one plays its part, which keeps shared memory shared."""
    return ForkingPickler.loads(bytes(ForkingPickler.dumps(thing)))


# A spawned process imports torch and a framework, for seconds: one process and one sampler show
# that it can. The two workers of a server, which take turns, have nothing of this process either,
# and import their sampler themselves.
STARTS = [("spawn", NAMES[0], True)]
STARTS += [("forkserver", name, stored) for name in NAMES for stored in (False, True)]


@pytest.fixture
def context(start):
    """How workers start; the server of forkserver imports once what all of them need."""
    found = multiprocessing.get_context(start)
    if start == "forkserver":
        found.set_forkserver_preload(["torch_geometric.loader", "gnnbench.sampling.pyg_adapter"])
    return found


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


@pytest.mark.parametrize(("start", "name", "stored"), STARTS)
def test_pygs_loader_gives_the_same_batches(name, graph, context):
    how = {"frontier": "cumulative"} if name == "pgsampler" else {}
    adapters = [build(name, graph, FANOUTS, seed=5, **how).as_pyg() for _ in range(2)]
    right = pyg_batches(graph, adapters[0])
    assert len(right) == 20
    assert pyg_batches(graph, adapters[1], context) == right


@pytest.mark.skipif(dgl is None, reason="DGL is not installed")
@pytest.mark.parametrize(("start", "name", "stored"), STARTS)
def test_dgls_loader_gives_the_samplers_batches(name, graph, context):
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
        right = sampler.sample(seeds, EPOCH, order.index(int(seeds[0])) // BATCH)
        for ours, block in zip(blocks, right.blocks, strict=True):
            assert sorted(ours.edata[dgl.EID].tolist()) == sorted(block.positions.tolist())
        count += len(seeds)
    assert count == 200


def tensors_in(thing):
    """What an object holds of tensors, in itself and in objects of the suite."""
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, (tuple, list)):
        for part in thing:
            yield from tensors_in(part)
    elif type(thing).__module__.startswith("gnnbench.") and hasattr(thing, "__dict__"):
        yield from tensors_in(list(vars(thing).values()))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_a_sampler_writes_is_shared(name, small_graph):
    """Only the graph, which is read, lies in memory that both have."""
    sampler = build(name, small_graph, FANOUTS, seed=5)
    sampler.sample([1, 2])
    other = sent(sampler)
    read = {other.setting.indptr.data_ptr(), other.setting.indices.data_ptr()}
    assert not any(t.is_shared() for t in tensors_in(other) if t.data_ptr() not in read)


@pytest.mark.parametrize(("name", "pick"), sorted({(name, pick) for name, pick, _ in CASES}))
def test_what_is_sent_is_what_it_was_built_with(name, pick, small_graph, tmp_path):
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
            what = "weights" if pick == "random_walk" else "positions"
            assert sorted(getattr(a, what).tolist()) == sorted(getattr(b, what).tolist())
