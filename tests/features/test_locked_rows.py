"""Stores over a page-locked table, with fake kernels and a fake driver; tests/gpu has the real
ones."""

from types import SimpleNamespace

import pytest
import torch
from locking import fake_driver, shared_table

from gnnbench.core.counters import LOCK_TIME, MAPPING_SHARE, Counts
from gnnbench.core.errors import HostMemoryError, MissingError, UnsupportedError
from gnnbench.features import BoltGather, DglGather, Uva, foreign, uva
from gnnbench.kernels import locked
from gnnbench.kernels.access import ELEMENTWISE

SPECS = {"uva": Uva(), "dgl": DglGather().resolved("cuda"), "graphbolt": BoltGather()}


@pytest.fixture
def driver(monkeypatch):
    return fake_driver(monkeypatch)


@pytest.fixture
def read(monkeypatch):
    """Tables that a fake kernel has read."""
    tables = []

    def rows(table, ids, access="page-ordered", blocks=0, out=None):
        assert access == "page-ordered"
        tables.append(table)
        return torch.index_select(table, 0, ids.long(), out=out)

    utils = SimpleNamespace(gather_pinned_tensor_rows=rows)
    monkeypatch.setattr(uva, "gather_zero_copy", rows)
    monkeypatch.setattr(foreign, "require_dgl", lambda: SimpleNamespace(utils=utils))
    monkeypatch.setattr(foreign, "require_graphbolt", lambda: SimpleNamespace(index_select=rows))
    return tables


def build(spec, table):
    """A store of a cell on a GPU."""
    job = SimpleNamespace(
        graph=SimpleNamespace(features=table), device=torch.device("cuda"), counts=Counts()
    )
    return spec.build(job)


@pytest.mark.parametrize("name", SPECS)
def test_shared_table_is_read_in_place(driver, read, name):
    table = shared_table()
    store = build(SPECS[name], table)
    assert driver == {table.data_ptr(): 240}
    metrics = store.prepare(None)
    assert list(metrics) == [LOCK_TIME, MAPPING_SHARE] and metrics[MAPPING_SHARE] == 0.5
    for ids in ([3, 14, 3], [0]):
        rows = store.load(SimpleNamespace(input_nodes=torch.tensor(ids, dtype=torch.int32)))
        assert torch.equal(rows, table[ids])
    assert {one.data_ptr() for one in read} == {table.data_ptr()}
    assert store.job.counts.rows() == [
        ["features", "feature_bytes", "zero_copy", 4 * 16], ["features", "calls", "zero_copy", 2],
    ]  # fmt: skip
    store.close()
    store.close()
    assert driver == {}


@pytest.mark.parametrize("access", ELEMENTWISE)
def test_elementwise_access_refuses_rows_that_are_no_multiple_of_4_bytes(driver, access):
    """3 and 5 elements of 2 bytes; nothing is locked."""
    words = f"access={access} loads 4 bytes per thread, and rows have 6 bytes"
    with pytest.raises(UnsupportedError, match=words):
        build(Uva(access=access), torch.zeros(9, 3, dtype=torch.int16))
    with pytest.raises(UnsupportedError, match="have 10 bytes"):
        build(Uva(access=access), torch.zeros(9, 5, dtype=torch.bfloat16))
    assert driver == {}
    build(Uva(access=access), torch.zeros(9, 4, dtype=torch.int16)).close()


@pytest.mark.parametrize("name", SPECS)
def test_mapped_file_is_copied_and_locked(driver, read, name, tmp_path):
    expected = torch.arange(60, dtype=torch.int16).view(15, 4)
    (tmp_path / "rows").write_bytes(expected.numpy().tobytes())
    table = torch.from_file(str(tmp_path / "rows"), size=60, dtype=torch.int16).view(15, 4)
    store = build(SPECS[name], table)
    assert list(driver.values()) == [120] and table.data_ptr() not in driver
    rows = store.load(SimpleNamespace(input_nodes=torch.tensor([14, 0])))
    assert torch.equal(rows, expected[[14, 0]])
    store.close()
    assert driver == {}


@pytest.mark.parametrize("name", SPECS)
def test_failed_locking_is_a_host_memory_error(driver, read, name, monkeypatch):
    monkeypatch.setattr(locked, "lock", lambda memory: 2)
    with pytest.raises(HostMemoryError, match="240 bytes of features cannot be locked for the GPU"):
        build(SPECS[name], shared_table())


@pytest.mark.parametrize("name", SPECS)
def test_locked_table_is_shared(name):
    assert SPECS[name].shared("cuda") == ("features",)


def test_sharing_of_dgls_tables():
    tables = {
        name: DglGather(table=name).resolved("cuda").shared("cuda") for name in ("host", "gpu")
    }
    assert tables == {"host": ("features",), "gpu": ()}
    assert DglGather().resolved("cpu").shared("cpu") == ()


@pytest.mark.parametrize("name", ["dgl", "graphbolt"])
def test_missing_package_is_reported_before_locking(driver, name, monkeypatch):
    def require():
        raise MissingError("it is not installed; install it")

    monkeypatch.setattr(foreign, "require_dgl", require)
    monkeypatch.setattr(foreign, "require_graphbolt", require)
    with pytest.raises(MissingError):
        build(SPECS[name], shared_table())
    assert driver == {}
