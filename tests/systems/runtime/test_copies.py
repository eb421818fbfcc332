"""The copy ceiling: time to copy as many bytes as a gather served, in equal pieces."""

import pytest
import torch
from compose import counted, make, run

from gnnbench.core.missing import Missing
from gnnbench.datasets.prepare import load_dataset
from gnnbench.kernels.features import gather
from gnnbench.systems.runtime import copy_ceiling

ROW = 5 * 4


@pytest.fixture
def system(tmp_path):
    table = load_dataset("rows@100x5", root=tmp_path)
    return make(table, until="memory_io", fanouts=(), batch_size=30, max_batches=3)


@pytest.fixture
def moved(system, monkeypatch):
    """First row and number of rows of every piece, for both ways of copying."""
    pieces_of = {"copied": [], "gathered": []}
    for name, pieces in pieces_of.items():
        plain = getattr(copy_ceiling.CopyCeiling, f"_{name}")

        def record(self, begin, out, plain=plain, pieces=pieces):
            spent = plain(self, begin, out)
            assert torch.equal(out, system.graph.features[begin : begin + out.shape[0]])
            pieces.append((begin, out.shape[0]))
            return spent

        monkeypatch.setattr(copy_ceiling.CopyCeiling, f"_{name}", record)
    return pieces_of


def test_copies_have_as_many_rows_as_were_served(system, moved):
    report = run(system)
    assert counted(report)["features", "feature_bytes", "host"] == 90 * ROW
    ((stage, name, where, seconds),) = system.diagnostics.copies({"host": 90 * ROW}, report.batches)
    assert (stage, name, where) == ("features", "copy_time_s", "host") and seconds > 0
    # One piece per batch; pieces differ, so that CPU caches do not serve them.
    assert moved["copied"] == [(0, 30), (30, 30), (60, 30)]
    assert moved["gathered"] == [(0, 30), (30, 30), (60, 30)]


def test_pieces_are_limited_and_within_the_table(system, moved, monkeypatch):
    monkeypatch.setattr(copy_ceiling, "PIECE_BYTES", 40 * ROW)
    system.diagnostics.copies({"host": 130 * ROW}, 1)
    assert moved["copied"] == [(0, 40), (40, 40), (0, 40), (40, 10)]
    system.diagnostics.copies({"host": 130 * ROW}, 13)
    assert [rows for _, rows in moved["copied"][4:]] == [10] * 13


def test_faster_of_two_ways_is_the_ceiling(system, monkeypatch):
    for one, other in ((1.0, 2.0), (2.0, 1.0)):
        monkeypatch.setattr(copy_ceiling.CopyCeiling, "_copied", lambda *_, s=one: s)
        monkeypatch.setattr(copy_ceiling.CopyCeiling, "_gathered", lambda *_, s=other: s)
        assert system.diagnostics.copies({"host": 60 * ROW}, 2)[0][3] == 2.0


def test_without_the_native_library_torch_copies(system, moved, monkeypatch):
    monkeypatch.setattr(
        copy_ceiling, "native_missing", lambda: Missing("it is not built", "build it")
    )
    assert system.diagnostics.copies({"host": 60 * ROW}, 2)[0][3] > 0
    assert (len(moved["copied"]), moved["gathered"]) == (2, [])


def test_reused_rows_are_not_copied(system):
    rows = system.diagnostics.copies(
        {"host": 30 * ROW, "cache": 30 * ROW, "reused": 30 * ROW, "peer": 0}, 1
    )
    assert [row[2] for row in rows] == ["host", "cache"]
    assert system.diagnostics.copies({}, 0) == []


def test_copies_do_not_change_the_epoch(system):
    """They change neither its counters nor rows that a store returned."""
    run(system)
    rows = system.stages.store.load(system.stages.sampler.sample(torch.arange(30), 0, 0))
    before = rows.clone()
    system.diagnostics.copies({"host": 90 * ROW}, 3)
    assert torch.equal(rows, before)
    system.counts.clear()
    report = run(system)
    assert report.ok and {key[1] for key in counted(report)} == {"feature_bytes", "calls"}


def test_gather_of_consecutive_rows_is_a_copy(system):
    rows = gather(system.graph.features, torch.arange(10, 20))
    assert torch.equal(rows, system.graph.features[10:20])
