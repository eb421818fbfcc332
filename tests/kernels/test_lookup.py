"""The id lookup, which persists across batches."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from int_tensors import ints

from gnnbench.kernels import lookup
from gnnbench.kernels.lookup import IdLookup


def test_lookup_by_hand():
    table = IdLookup(8)
    assert table.find(ints(0, 7)).tolist() == [-1, -1]
    table.remember(ints(5, 2, 7))
    positions = table.find(ints(7, 0, 5, 2))
    assert positions.dtype is torch.int32 and positions.tolist() == [2, -1, 0, 1]
    table.remember(ints(2, 0).long())
    assert table.find(torch.arange(8)).tolist() == [1, -1, 0, -1, -1, -1, -1, -1]
    assert table.slots.tolist() == [1, 0, 0, 0, 0, 0, 0, 2]  # old entries are not cleared
    assert table.generations.tolist() == [3, 0, 3, 0, 0, 2, 0, 2]
    table.forget()
    assert table.find(torch.arange(8)).eq(-1).all()
    assert table.find(ints()).numel() == 0


def test_many_ids_are_stored_in_pieces(monkeypatch):
    monkeypatch.setattr(lookup, "PIECE", 2)
    table = IdLookup(8)
    table.remember(ints(5, 2, 7, 0, 1))
    assert table.find(torch.arange(8)).tolist() == [3, 4, 1, -1, -1, 0, -1, 2]
    table.remember(ints())
    assert table.find(torch.arange(8)).eq(-1).all()


def test_remember_all_maps_each_id_to_itself(monkeypatch):
    monkeypatch.setattr(lookup, "LAST", 3)
    table = IdLookup(5)
    for step in range(5):
        table.remember(ints(4, step % 4))
        table.remember_all()
        assert table.find(torch.arange(5)).tolist() == [0, 1, 2, 3, 4]
    table.remember(ints(4))
    assert table.find(torch.arange(5)).tolist() == [-1, -1, -1, -1, 0]


def test_table_is_cleared_after_the_last_generation(monkeypatch):
    monkeypatch.setattr(lookup, "LAST", 3)
    table = IdLookup(4)
    for step in range(10):
        table.remember(ints(step % 4))
        assert 1 <= table.generation <= 3
        positions = table.find(torch.arange(4)).tolist()
        assert positions == [0 if i == step % 4 else -1 for i in range(4)]


@given(st.lists(st.lists(st.integers(0, 19), unique=True), max_size=12))
@settings(max_examples=100)
def test_lookup_equals_a_dictionary(batches):
    table, known = IdLookup(20), {}
    for batch in batches:
        expected = [known.get(i, -1) for i in range(20)]
        assert table.find(torch.arange(20)).tolist() == expected
        table.remember(ints(*batch))
        known = {node: place for place, node in enumerate(batch)}
