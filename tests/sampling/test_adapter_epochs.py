"""Batch i of epoch e is the same for any number of workers, persistent or not, however started."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
import torch

import gnnbench
from gnnbench.core.errors import UnsupportedError
from gnnbench.sampling.batch_counter import BatchCounter

pytest.importorskip("torch_geometric")

from adapter_graphs import csc_of, dgl, needs_dgl
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

NODES, BATCH = 70, 20
EPOCHS = (3, 1, 1)
# Workers, whether they persist, how they start, and whether seeds are shuffled. With 3 workers the
# 4 batches are uneven shards. Other ways to start workers: test_workers.py.
WAYS = [(2, False, "fork", True), (3, True, "fork", True)]
LOADERS = []  # of the running test


class Shuffled(torch.utils.data.Sampler):
    """Another order in each pass, by a seeded generator that other processes need not have."""

    passes = 0

    def __len__(self):
        return NODES

    def __iter__(self):
        self.passes += 1
        rng = torch.Generator().manual_seed(self.passes)
        return iter(torch.randperm(NODES, generator=rng).tolist())


def graph():
    rng = torch.Generator().manual_seed(0)
    src, dst = torch.randint(NODES, (2, 600), generator=rng)
    return src, dst


def sampler():
    src, dst = graph()
    indptr, indices, _ = csc_of(NODES, src, dst)
    return gnnbench.build_sampler("fused-map", (indptr, indices), [2, 2])


def process_options(workers, persistent, start):
    if workers == 0:
        return {}
    context = multiprocessing.get_context(start)
    return {
        "num_workers": workers, "persistent_workers": persistent, "multiprocessing_context": context
    }  # fmt: skip


@pytest.fixture(autouse=True)
def loaders():
    """Ends workers of these loaders: the garbage collector would wait 5 s for each of them."""
    yield
    while LOADERS:
        LOADERS.pop()._iterator = None


def pyg_loader(adapter, workers=0, persistent=False, start="fork", shuffle=False, **how):
    data = Data(edge_index=torch.stack(graph()), num_nodes=NODES)
    loader = NodeLoader(
        data, adapter, batch_size=BATCH, sampler=Shuffled() if shuffle else None,
        **process_options(workers, persistent, start), **how,
    )  # fmt: skip
    LOADERS.append(loader)
    return loader


def drawn(batch):
    return batch.n_id[: batch.batch_size].tolist(), batch.e_id.tolist()


def pyg_epochs(*way):
    adapter = sampler().as_pyg()
    loader = pyg_loader(adapter, *way)
    epochs = []
    for epoch in EPOCHS:
        adapter.set_epoch(epoch)
        epochs.append([drawn(batch) for batch in loader])
    return epochs


@pytest.mark.parametrize(
    ("workers", "persistent", "start", "shuffle"), [*WAYS, (1, True, "fork", False)]
)
def test_pyg_batches_do_not_depend_on_workers(workers, persistent, start, shuffle):
    expected = pyg_epochs(0, False, "fork", shuffle)
    assert [len(epoch) for epoch in expected] == [4] * len(EPOCHS)
    assert shuffle or expected[1] == expected[2] != expected[0]
    assert pyg_epochs(workers, persistent, start, shuffle) == expected


def dgl_epochs(workers, persistent, start, shuffle):
    g = dgl.graph(graph(), num_nodes=NODES)
    adapter = sampler().as_dgl()
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(NODES), adapter, batch_size=BATCH, shuffle=shuffle,
        **process_options(workers, persistent, start),
    )  # fmt: skip
    LOADERS.append(loader)
    epochs = []
    np.random.seed(5)
    for epoch in EPOCHS:
        adapter.set_epoch(epoch)
        epochs.append(
            sorted(
                (seeds.tolist(), [block.edata[dgl.EID].tolist() for block in blocks])
                for _, seeds, blocks in loader
            )
        )
    return epochs


@needs_dgl
@pytest.mark.parametrize(("workers", "persistent", "start", "shuffle"), WAYS)
def test_dgl_batches_do_not_depend_on_workers(workers, persistent, start, shuffle):
    """DGL yields its workers' shares in turn, so the batches of an epoch are compared as a set."""
    expected = dgl_epochs(0, False, "fork", shuffle)
    assert [len(epoch) for epoch in expected] == [4] * len(EPOCHS)
    assert dgl_epochs(workers, persistent, start, shuffle) == expected


def test_an_abandoned_pass_does_not_shift_the_next_one():
    """Its prefetched batches are drawn before or after ``set_epoch``, and dropped."""
    adapter = sampler().as_pyg()
    loader = pyg_loader(adapter, 1, True, prefetch_factor=2)
    expected = pyg_epochs(0, False, "fork", False)
    for _ in range(2):
        for epoch, batches in zip(EPOCHS, expected, strict=True):
            adapter.set_epoch(epoch)
            assert drawn(next(iter(loader))) == batches[0]
    adapter.set_epoch(EPOCHS[0])
    assert [drawn(batch) for batch in loader] == expected[0]


@pytest.mark.parametrize("persistent", [False, True])
def test_set_epoch_does_not_affect_the_running_pass(persistent):
    expected = pyg_epochs(0, False, "fork", False)
    adapter = sampler().as_pyg()
    loader = pyg_loader(adapter, 1, persistent, prefetch_factor=1)
    for number, epoch in enumerate(EPOCHS[:2]):
        adapter.set_epoch(epoch)
        batches = iter(loader)
        edges = [drawn(next(batches))]
        adapter.set_epoch(EPOCHS[number + 1])
        edges += [drawn(batch) for batch in batches]
        assert edges == expected[number]


def test_workers_start_at_the_batch_that_was_set():
    one, other = sampler().as_pyg(), sampler().as_pyg()
    one.set_epoch(1, batch=7)
    other.set_epoch(1, batch=7)
    assert [drawn(b) for b in pyg_loader(one)] == [drawn(b) for b in pyg_loader(other, 2, True)]


def test_two_loaders_can_share_an_adapter():
    adapter = sampler().as_pyg()
    loaders = [pyg_loader(adapter, 1, True) for _ in range(2)]
    for epoch, expected in zip(EPOCHS[:2], pyg_epochs(0, False, "fork", False), strict=False):
        adapter.set_epoch(epoch)
        for loader in loaders:
            assert [drawn(batch) for batch in loader] == expected


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_a_copy_has_an_epoch_of_its_own(copied):
    adapter = sampler().as_pyg()
    adapter.set_epoch(3)
    other = copied(adapter)
    other.set_epoch(1)
    _, first, _ = expected = pyg_epochs(0, False, "fork", False)
    assert [drawn(batch) for batch in pyg_loader(other, 1, True)] == first
    assert [drawn(batch) for batch in pyg_loader(adapter, 1, True)] == expected[0]
    assert other._counter._shared.is_shared()


def test_unknown_batch_number_is_reported(monkeypatch):
    """In a worker process whose loop is not torch's."""
    monkeypatch.setattr("gnnbench.sampling.batch_counter.get_worker_info", lambda: object())
    with pytest.raises(UnsupportedError, match="number of the batch is unknown"):
        BatchCounter().next()


def test_a_call_without_a_loader_counts():
    adapter = sampler().as_pyg()
    reference = sampler().as_pyg()
    nodes = torch.arange(BATCH)
    edges = []
    for number in (0, 1):
        reference.set_epoch(0, number)
        request = NodeSamplerInput(input_id=None, node=nodes)
        edges.append(adapter.sample_from_nodes(request).edge.tolist())
        assert edges[-1] == reference.sample_from_nodes(request).edge.tolist()
    assert edges[0] != edges[1]
