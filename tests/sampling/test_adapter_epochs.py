"""Batch i of epoch e is the same for any number of workers, persistent or not, however started."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
import torch

import gnnbench
from gnnbench.core.errors import MissingError, UnsupportedError
from gnnbench.kernels.dgl_import import require_dgl
from gnnbench.sampling.batch_counter import BatchCounter

pytest.importorskip("torch_geometric")

from adapter_graphs import csc_of
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

try:
    dgl = require_dgl()
except MissingError:
    dgl = None

NODES, BATCH = 70, 20
EPOCHS = (3, 1, 1)
# Workers, whether they persist, how they start, and whether seeds are shuffled.
WAYS = [
    (2, False, "fork", True), (3, True, "fork", True), (1, True, "fork", False),
    (2, True, "forkserver", True),
]  # fmt: skip
# A spawned worker imports torch and PyG, for seconds: one shows that it can.
SPAWNED = (1, True, "spawn", True)


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
    if start == "forkserver":
        context.set_forkserver_preload(["torch_geometric.loader", "gnnbench.sampling.pyg_adapter"])
    return {
        "num_workers": workers, "persistent_workers": persistent, "multiprocessing_context": context
    }  # fmt: skip


def pyg_loader(adapter, workers=0, persistent=False, start="fork", shuffle=False, **how):
    data = Data(edge_index=torch.stack(graph()), num_nodes=NODES)
    return NodeLoader(
        data, adapter, batch_size=BATCH, sampler=Shuffled() if shuffle else None,
        **process_options(workers, persistent, start), **how,
    )  # fmt: skip


def drawn(batch):
    return batch.n_id[: batch.batch_size].tolist(), batch.e_id.tolist()


def pyg_epochs(*way):
    adapter = sampler().as_pyg()
    loader = pyg_loader(adapter, *way)
    found = []
    for epoch in EPOCHS:
        adapter.set_epoch(epoch)
        found.append([drawn(batch) for batch in loader])
    return found


@pytest.mark.parametrize(("workers", "persistent", "start", "shuffle"), [*WAYS, SPAWNED])
def test_pyg(workers, persistent, start, shuffle):
    right = pyg_epochs(0, False, "fork", shuffle)
    assert [len(epoch) for epoch in right] == [4] * len(EPOCHS)
    assert shuffle or right[1] == right[2] != right[0]
    assert pyg_epochs(workers, persistent, start, shuffle) == right


def dgl_epochs(workers, persistent, start, shuffle):
    g = dgl.graph(graph(), num_nodes=NODES)
    adapter = sampler().as_dgl()
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(NODES), adapter, batch_size=BATCH, shuffle=shuffle,
        **process_options(workers, persistent, start),
    )  # fmt: skip
    found = []
    np.random.seed(5)
    for epoch in EPOCHS:
        adapter.set_epoch(epoch)
        found.append(
            sorted(
                (seeds.tolist(), [block.edata[dgl.EID].tolist() for block in blocks])
                for _, seeds, blocks in loader
            )
        )
    return found


@pytest.mark.skipif(dgl is None, reason="DGL is not installed")
@pytest.mark.parametrize(("workers", "persistent", "start", "shuffle"), WAYS)
def test_dgl(workers, persistent, start, shuffle):
    """DGL yields its workers' shares in turn, so the batches of an epoch are compared as a set."""
    right = dgl_epochs(0, False, "fork", shuffle)
    assert [len(epoch) for epoch in right] == [4] * len(EPOCHS)
    assert dgl_epochs(workers, persistent, start, shuffle) == right


def test_a_pass_that_is_left_early_does_not_move_the_next_one():
    """Its batches that are under way are drawn before or after ``set_epoch``, and dropped."""
    adapter = sampler().as_pyg()
    loader = pyg_loader(adapter, 2, True, prefetch_factor=2)
    right = pyg_epochs(0, False, "fork", False)
    for _ in range(2):
        for epoch, wanted in zip(EPOCHS, right, strict=True):
            adapter.set_epoch(epoch)
            assert drawn(next(iter(loader))) == wanted[0]
    adapter.set_epoch(EPOCHS[0])
    assert [drawn(batch) for batch in loader] == right[0]


@pytest.mark.parametrize("persistent", [False, True])
def test_the_next_epoch_does_not_reach_the_pass_under_way(persistent):
    right = pyg_epochs(0, False, "fork", False)
    adapter = sampler().as_pyg()
    loader = pyg_loader(adapter, 1, persistent, prefetch_factor=1)
    for number, epoch in enumerate(EPOCHS[:2]):
        adapter.set_epoch(epoch)
        coming = iter(loader)
        found = [drawn(next(coming))]
        adapter.set_epoch(EPOCHS[number + 1])
        found += [drawn(batch) for batch in coming]
        assert found == right[number]


def test_workers_begin_at_the_batch_that_was_set():
    one, other = sampler().as_pyg(), sampler().as_pyg()
    one.set_epoch(1, batch=7)
    other.set_epoch(1, batch=7)
    assert [drawn(b) for b in pyg_loader(one)] == [drawn(b) for b in pyg_loader(other, 3, True)]


def test_two_loaders_may_have_one_sampler():
    adapter = sampler().as_pyg()
    loaders = [pyg_loader(adapter, 2, True), pyg_loader(adapter, 1, True)]
    for epoch, wanted in zip(EPOCHS[:2], pyg_epochs(0, False, "fork", False), strict=False):
        adapter.set_epoch(epoch)
        for loader in loaders:
            assert [drawn(batch) for batch in loader] == wanted


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_a_copy_has_an_epoch_of_its_own(copied):
    adapter = sampler().as_pyg()
    adapter.set_epoch(3)
    other = copied(adapter)
    other.set_epoch(1)
    _, first, _ = right = pyg_epochs(0, False, "fork", False)
    assert [drawn(batch) for batch in pyg_loader(other, 2, True)] == first
    assert [drawn(batch) for batch in pyg_loader(adapter, 2, True)] == right[0]
    assert other._counter._shared.is_shared()


def test_a_batch_whose_number_is_unknown(monkeypatch):
    """In a worker process whose loop is not torch's."""
    monkeypatch.setattr("gnnbench.sampling.batch_counter.get_worker_info", lambda: object())
    with pytest.raises(UnsupportedError, match="number of the batch is unknown"):
        BatchCounter().next()


def test_a_call_without_a_loader_counts():
    adapter = sampler().as_pyg()
    wanted = sampler().as_pyg()
    nodes = torch.arange(BATCH)
    found = []
    for number in (0, 1):
        wanted.set_epoch(0, number)
        asked = NodeSamplerInput(input_id=None, node=nodes)
        found.append(adapter.sample_from_nodes(asked).edge.tolist())
        assert found[-1] == wanted.sample_from_nodes(asked).edge.tolist()
    assert found[0] != found[1]
