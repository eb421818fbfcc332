"""Ceilings of this machine's CPU: which there are, what they do, and what is refused."""

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
    """A machine of small caches."""
    monkeypatch.setattr(ceilings, "cpu_caches", lambda: {1: 1 << 15, 2: 1 << 18, 3: 1 << 22})
    monkeypatch.setattr(ceilings, "LEAST_BYTES", 1 << 22)
    monkeypatch.setattr(ceilings, "CACHE_BYTES", {"cpu": 1 << 22})
    monkeypatch.setattr(ceilings, "ASKED_BYTES", {"cpu": 1 << 18})
    monkeypatch.setattr(ceilings, "STEPS", {"cpu": 1 << 10})


def test_their_memory_is_free_once_they_are_let_go(small):
    gc.disable()
    try:
        found = Ceilings(CPU, [64])
        words = weakref.ref(found._source)
        del found
        assert words() is None
    finally:
        gc.enable()


def test_every_level_has_its_ceiling(small):
    found = Ceilings(CPU, [64, 400])
    assert [(c.name, c.level, c.unit, c.row_bytes) for c in found.all] == [
        ("fma", "", "flop/s", 0), ("copy", "memory", "B/s", 0), ("read", "memory", "B/s", 0),
        ("read", "L2", "B/s", 0), ("read", "L3", "B/s", 0), ("rows", "memory", "B/s", 4),
        ("rows", "memory", "B/s", 64), ("rows", "memory", "B/s", 400),
    ]  # fmt: skip
    holds = {c.level: c.level_bytes for c in found.all}
    assert holds.pop("memory") == machine.memory_limit_bytes()
    assert holds == {"": 0, "L2": 1 << 18, "L3": 1 << 22}
    done = {(c.name, c.level, c.row_bytes): c.amount(c.run()) for c in found.all}
    half = 1 << 23  # twice the last cache
    assert done["copy", "memory", 0] == 2 * half
    assert done["read", "memory", 0] == half
    assert done["read", "L2", 0] == done["read", "L3", 0] == 1 << 22
    assert done["rows", "memory", 4] == (1 << 14) * 4
    assert done["rows", "memory", 400] == (1 << 18) // 400 * 400
    lanes = done["fma", "", 0] / 2 / (1 << 10) / torch.get_num_threads()
    assert lanes in (48, 96, 192)
    found.sweep()


def test_work_that_was_not_done_is_no_ceiling(small, monkeypatch):
    found = Ceilings(CPU, [])
    by_name = {(c.name, c.level, c.row_bytes): c for c in found.all}
    short = {
        "read": lambda words, passes=1: torch.tensor([0]),
        "rows": lambda words, ids: torch.tensor([1]),
        "fma": lambda like, steps: torch.tensor([steps + 1]),
        "copy": lambda source, target: None,
    }
    for name, lazy in short.items():
        monkeypatch.setattr(ceilings.ops, name, lazy)
    by_name["copy", "memory", 0].amount(None)  # the result of the last copy is still there
    for key, words in {
        ("read", "memory", 0): "read other words", ("rows", "memory", 4): "read other words",
        ("fma", "", 0): "did 1025 steps", ("copy", "memory", 0): "differs from its source",
    }.items():  # fmt: skip
        ceiling = by_name[key]
        with pytest.raises(RuntimeError, match=words):
            ceiling.amount(ceiling.run())


def test_memory_that_a_cache_may_hold_says_so(small, monkeypatch):
    monkeypatch.setattr(ceilings.machine, "memory_limit_bytes", lambda: 1 << 25)
    found = {(c.name, c.level): c.remark for c in Ceilings(CPU, []).all}
    assert found["copy", "memory"] == "4 MiB may stay in a cache of 4"
    assert found["rows", "memory"] == found["read", "memory"] == found["copy", "memory"]
    assert not found["read", "L2"] and not found["fma", ""]


def test_without_sizes_of_caches_there_are_none_of_theirs(small, monkeypatch):
    monkeypatch.setattr(ceilings, "cpu_caches", dict)
    monkeypatch.setattr(ceilings, "GPU_BYTES", 1 << 22)
    found = Ceilings(CPU, []).all
    assert [(c.name, c.level) for c in found] == [
        ("fma", ""), ("copy", "memory"), ("read", "memory"), ("rows", "memory"),
    ]  # fmt: skip
    assert found[1].remark == "sizes of caches are unknown"


@pytest.mark.parametrize(
    ("caches", "kind", "sizes"),
    [
        ({1: 1 << 16, 2: 4 << 20, 3: 300 << 20}, "cpu", {"L2": 2 << 20, "L3": 16 << 20}),
        ({2: 4 << 20, 3: 16 << 20}, "cpu", {"L2": 2 << 20, "L3": 8 << 20}),
        ({2: 4 << 20, 3: 8 << 20}, "cpu", {"L2": 2 << 20}),  # no room for what the second has not
        ({2: 4 << 20}, "cpu", {"L2": 2 << 20}),
        ({2: 60 << 20}, "cuda", {"L2": 15 << 20}),
        ({}, "cpu", {}),
    ],
)
def test_what_is_read_out_of_a_cache_fits_there(caches, kind, sizes):
    assert ceilings._cached_sizes(caches, kind) == sizes
