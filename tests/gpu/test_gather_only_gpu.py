"""Gather-only runs on a GPU: rows of every store, and copies of as many bytes on the same path."""

import pytest
import torch
from compose import counted, make, run

from gnnbench.datasets.prepare import load_dataset

pytestmark = pytest.mark.gpu

ROW = 37 * 4
STORES = [
    ({"features": "host"}, "host_copy"),
    ({"features": "uva", "features.access": "naive"}, "zero_copy"),
    ({"features": "uva", "features.access": "aligned"}, "zero_copy"),
    ({"features": "uva", "features.access": "page-ordered"}, "zero_copy"),
    ({"features": "uva", "features.access": "elementwise"}, "zero_copy"),
    ({"features": "uva", "features.access": "elementwise-shifted"}, "zero_copy"),
    ({"features": "gpu"}, "device"),
    ({"features": "dgl", "features.table": "host"}, "host_copy"),
    ({"features": "dgl", "features.table": "uva"}, "zero_copy"),
    ({"features": "dgl", "features.table": "gpu"}, "device"),
    ({"features": "graphbolt"}, "zero_copy"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return load_dataset("rows@5kx37", root=tmp_path_factory.mktemp("data"))


def gathering(table, system="baseline", settings=None, device="cuda"):
    return make(
        table, system, settings, until="memory_io", device=device, fanouts=(), batch_size=700,
        max_batches=5,
    )  # fmt: skip


@pytest.mark.parametrize(("settings", "where"), STORES, ids=str)
def test_every_store_gathers_the_seeds(table, settings, where):
    system, here = gathering(table, settings=settings), gathering(table, device="cpu")
    report = system.check()
    assert report.ok, report.reason
    assert report.digest == here.check().digest
    measured = run(system, epoch=4)
    assert measured.ok, measured.reason
    assert (measured.seeds, measured.sampled_edges) == (3500, 0)
    assert counted(measured)["features", "feature_bytes", where] == 3500 * ROW
    before = system.auditor.peak_bytes()
    ((_, name, source, seconds),) = system.diagnostics.copies({where: 3500 * ROW}, 5)
    assert (name, source) == ("copy_time_s", where) and seconds > 0
    assert system.auditor.peak_bytes() == before  # a ceiling uses no memory of the system
    system.close()


def test_pyg_fetches_its_seeds(table):
    system = gathering(table, "pyg")
    assert system.check().ok
    report = run(system)
    assert report.ok and counted(report)["features", "feature_bytes", "host_copy"] == 3500 * ROW
    system.close()


def test_larger_copies_take_longer(table):
    """Events enclose the copies, not their launches."""
    system = gathering(table, settings={"features": "uva"})
    system.diagnostics.copies({"zero_copy": 3500 * ROW}, 1)
    few, many = (
        min(system.diagnostics.copies({"zero_copy": n * ROW}, n // 3500)[0][3] for _ in range(5))
        for n in (3500, 350_000)
    )
    assert many > few
    assert torch.cuda.current_stream().query()
    system.close()
