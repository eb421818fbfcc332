"""WholeGraph's store with a fake WholeGraph: its calls, and finalization."""

import sys
import types

import pytest
import torch
from compose import make

from gnnbench.core.errors import UnsupportedError
from gnnbench.features.wholegraph import WholeRows
from gnnbench.kernels.wholegraph_import import WholeMemory


class Tensor:
    """Memory of one rank."""

    def __init__(self, sizes, dtype):
        self.values = torch.empty(sizes, dtype=dtype)

    def get_local_tensor(self, host_view):
        return self.values, 0

    def gather(self, ids):
        return self.values[ids.long()]


@pytest.fixture
def calls(monkeypatch):
    """Installs a fake WholeGraph; returns its calls."""
    calls = []
    monkeypatch.setattr(WholeMemory, "_open", None)
    wgth = types.ModuleType("pylibwholegraph.torch")
    comm = types.SimpleNamespace(support_type_location=lambda kind, where: kind != "distributed")

    def create(of, memory, location, sizes, dtype, strides):
        calls.append(("create", memory, location, sizes, strides))
        return Tensor(sizes, dtype)

    wgth.init_torch_env_and_create_wm_comm = lambda *_, **__: calls.append(("init",))
    wgth.get_local_device_communicator = lambda: comm
    wgth.create_wholememory_tensor = create
    wgth.destroy_wholememory_tensor = lambda stored: calls.append(("free",))
    wgth.finalize = lambda: calls.append(("finalize",))
    package = types.ModuleType("pylibwholegraph")
    package.torch = wgth
    librmm = types.ModuleType("librmm")
    librmm.load_library = lambda: None
    for name, module in (("pylibwholegraph", package), ("pylibwholegraph.torch", wgth),
                         ("librmm", librmm)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")
    return calls


@pytest.mark.parametrize(("table", "location"), [("uva", "cpu"), ("gpu", "cuda")])
def test_rows_equal_the_table(table, location, small_graph, calls):
    system = make(small_graph)
    store = WholeRows(system.job, table, "chunked")
    ids = torch.tensor([5, 0, 5, 2], dtype=torch.int32)
    assert torch.equal(store.fetch(ids), small_graph.features[[5, 0, 5, 2]])
    rows, dim = small_graph.features.shape
    assert calls == [("init",), ("create", "chunked", location, [rows, dim], [dim, 1])]
    where = "device" if table == "gpu" else "zero_copy"
    assert ["features", "feature_bytes", where, 4 * dim * 4] in system.job.counts.rows()
    store.close()
    assert calls[2:] == [("free",), ("finalize",)]


def test_last_stage_finalizes_wholegraph(small_graph, calls):
    first, second = WholeMemory.share(), WholeMemory.share()
    assert first is second
    first.close()
    assert calls == [("init",)]
    second.close()
    assert calls == [("init",), ("finalize",)]
    WholeMemory.share().close()  # it can be initialized again
    assert calls == [("init",), ("finalize",)] * 2


def test_missing_memory_is_reported(small_graph, calls):
    job = make(small_graph).job
    with pytest.raises(UnsupportedError, match=r"give -o baseline\.features\.memory=chunked"):
        WholeRows(job, "uva", "distributed")
