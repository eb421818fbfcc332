"""Measured ceilings of the CPU: names, work, and detection of missing work."""

import gc
import weakref

import pytest
import torch

from gnnbench.measure import machine
from gnnbench.roofline import ceilings
from gnnbench.roofline.ceilings import Ceilings

CPU = torch.device("cpu")


@pytest.fixture
def small(monkeypatch):
    """Simulates a machine with small caches."""
    monkeypatch.setattr(ceilings, "cpu_caches", lambda: {1: 1 << 15, 2: 1 << 18, 3: 1 << 22})
    monkeypatch.setattr(ceilings, "LEAST_BYTES", 1 << 22)
    monkeypatch.setattr(ceilings, "CACHE_BYTES", {"cpu": 1 << 22})
    monkeypatch.setattr(ceilings, "ASKED_BYTES", {"cpu": 1 << 18})
    monkeypatch.setattr(ceilings, "STEPS", {"cpu": 1 << 10})


def test_ceilings_free_their_memory(small):
    gc.disable()
    try:
        measured = Ceilings(CPU, [64])
        words = weakref.ref(measured._source)
        del measured
        assert words() is None
    finally:
        gc.enable()


def test_every_memory_level_has_a_ceiling(small):
    measured = Ceilings(CPU, [64, 400])
    assert [(c.name, c.level, c.unit, c.row_bytes) for c in measured.all] == [
        ("fma", "", "flop/s", 0), ("copy", "memory", "B/s", 0), ("read", "memory", "B/s", 0),
        ("read", "L2", "B/s", 0), ("read", "L3", "B/s", 0), ("rows", "memory", "B/s", 4),
        ("rows", "memory", "B/s", 64), ("rows", "memory", "B/s", 400),
    ]  # fmt: skip
    sizes = {c.level: c.level_bytes for c in measured.all}
    assert sizes.pop("memory") == machine.memory_limit_bytes()
    assert sizes == {"": 0, "L2": 1 << 18, "L3": 1 << 22}
    amounts = {(c.name, c.level, c.row_bytes): c.amount(c.run()) for c in measured.all}
    half = 1 << 23  # twice the last cache
    assert amounts["copy", "memory", 0] == 2 * half
    assert amounts["read", "memory", 0] == half
    assert amounts["read", "L2", 0] == amounts["read", "L3", 0] == 1 << 22
    assert amounts["rows", "memory", 4] == (1 << 14) * 4
    assert amounts["rows", "memory", 400] == (1 << 18) // 400 * 400
    lanes = amounts["fma", "", 0] / 2 / (1 << 10) / torch.get_num_threads()
    assert lanes in (48, 96, 192)
    measured.sweep()


def test_ceiling_with_missing_work_is_an_error(small, monkeypatch):
    measured = Ceilings(CPU, [])
    by_name = {(c.name, c.level, c.row_bytes): c for c in measured.all}
    short = {
        "read": lambda words, passes=1: torch.tensor([0]),
        "rows": lambda words, ids: torch.tensor([1]),
        "fma": lambda like, steps: torch.tensor([steps + 1]),
        "copy": lambda source, target: None,
    }
    for name, lazy in short.items():
        monkeypatch.setattr(ceilings.ops, name, lazy)
    by_name["copy", "memory", 0].amount(None)  # still has the result of the last copy
    for key, words in {
        ("read", "memory", 0): "read other words", ("rows", "memory", 4): "read other words",
        ("fma", "", 0): "did 1025 steps", ("copy", "memory", 0): "differs from its source",
    }.items():  # fmt: skip
        ceiling = by_name[key]
        with pytest.raises(RuntimeError, match=words):
            ceiling.amount(ceiling.run())


def test_ceiling_of_memory_that_fits_a_cache_has_a_remark(small, monkeypatch):
    monkeypatch.setattr(ceilings.machine, "memory_limit_bytes", lambda: 1 << 25)
    remarks = {(c.name, c.level): c.remark for c in Ceilings(CPU, []).all}
    assert remarks["copy", "memory"] == "4 MiB may stay in a cache of 4"
    assert remarks["rows", "memory"] == remarks["read", "memory"] == remarks["copy", "memory"]
    assert not remarks["read", "L2"] and not remarks["fma", ""]


def test_unknown_cache_sizes_leave_no_cache_ceilings(small, monkeypatch):
    monkeypatch.setattr(ceilings, "cpu_caches", dict)
    monkeypatch.setattr(ceilings, "GPU_BYTES", 1 << 22)
    measured = Ceilings(CPU, []).all
    assert [(c.name, c.level) for c in measured] == [
        ("fma", ""), ("copy", "memory"), ("read", "memory"), ("rows", "memory"),
    ]  # fmt: skip
    assert measured[1].remark == "sizes of caches are unknown"


@pytest.mark.parametrize(
    ("caches", "kind", "sizes"),
    [
        ({1: 1 << 16, 2: 4 << 20, 3: 300 << 20}, "cpu", {"L2": 2 << 20, "L3": 16 << 20}),
        ({2: 4 << 20, 3: 16 << 20}, "cpu", {"L2": 2 << 20, "L3": 8 << 20}),
        ({2: 4 << 20, 3: 8 << 20}, "cpu", {"L2": 2 << 20}),  # no size exceeds L2 and fits L3
        ({2: 4 << 20}, "cpu", {"L2": 2 << 20}),
        ({2: 60 << 20}, "cuda", {"L2": 15 << 20}),
        ({}, "cpu", {}),
    ],
)
def test_cached_sizes_fit_their_cache(caches, kind, sizes):
    assert ceilings._cached_sizes(caches, kind) == sizes
