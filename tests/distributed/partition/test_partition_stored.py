import json

import numpy as np
import pytest
import torch
from partition_graphs import graph_of

import gnnbench
from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.catalog import list_datasets
from gnnbench.distributed.partition import stored
from gnnbench.distributed.partition.methods import partition
from gnnbench.distributed.partition.stored import folder_of, load, load_or_make, save


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def graph(root):
    return gnnbench.load_dataset("ogbn_arxiv~twin@0.01", root=root)


def test_folder_is_next_to_the_graph(graph):
    folder = folder_of(graph, 3, "random", 5)
    assert folder.parent == graph.path.with_name(f"{graph.path.name}.partitions")
    assert folder.name == "random-3-seed5"


def test_what_is_saved_is_loaded(graph, root):
    assert load(graph, 3, "random", 5) is None
    made = partition(graph, 3, "random", 5)
    save(graph, made)
    loaded = load(graph, 3, "random", 5)
    for array in stored.ARRAYS:
        assert torch.equal(getattr(loaded, array), getattr(made, array))
    assert (loaded.method, loaded.seed) == ("random", 5)
    names = [known.name for known in list_datasets(root)]
    assert not any("partitions" in name for name in names)


def test_it_is_made_once(graph, monkeypatch):
    made = load_or_make(graph, 2, "contiguous")
    monkeypatch.setattr(stored, "partition", None)
    assert torch.equal(load_or_make(graph, 2, "contiguous").original, made.original)


def test_its_digest_is_known_without_reading_it(graph):
    made = load_or_make(graph, 7, "contiguous")
    assert stored.known_digest(graph.path, 7, "contiguous", 0) == made.digest()
    assert stored.known_digest(graph.path, 8, "contiguous", 0) is None
    path = folder_of(graph, 7, "contiguous", 0) / "partition.json"
    meta = json.loads(path.read_text())
    del meta["digest"]  # as one that was stored before
    path.write_text(json.dumps(meta))
    assert stored.known_digest(graph.path, 7, "contiguous", 0) is None


def test_what_making_it_took_is_stored_with_it(graph):
    made = load_or_make(graph, 4, "contiguous")
    assert made.made_s > 0
    assert load_or_make(graph, 4, "contiguous").made_s == made.made_s
    save(graph, partition(graph, 5, "contiguous"))  # of one that nobody timed
    assert load(graph, 5, "contiguous").made_s is None


def test_one_that_was_stored_before_times_were_is_read(graph):
    save(graph, partition(graph, 6, "contiguous"))
    path = folder_of(graph, 6, "contiguous", 0) / "partition.json"
    meta = json.loads(path.read_text())
    del meta["made_s"]
    path.write_text(json.dumps(meta))
    assert load(graph, 6, "contiguous").made_s is None


def spoil_array(folder):
    array = np.load(folder / "original.npy")
    array[3] = array[4]
    np.save(folder / "original.npy", array)


def spoil_range(folder):
    array = np.load(folder / "original.npy")
    array[0] = len(array)
    np.save(folder / "original.npy", array)


def spoil_type(folder):
    np.save(folder / "places.npy", np.load(folder / "places.npy").astype(np.int32))


def spoil_offsets(folder):
    array = np.load(folder / "offsets.npy")
    array[-1] -= 1
    np.save(folder / "offsets.npy", array)


def spoil_meta(folder):
    (folder / "partition.json").write_text("{")


def cut_off(folder):
    words = (folder / "original.npy").read_bytes()
    (folder / "original.npy").write_bytes(words[:-8])


def lose(folder):
    (folder / "places.npy").unlink()


@pytest.mark.parametrize(
    "spoil", [spoil_array, spoil_range, spoil_type, spoil_offsets, spoil_meta, cut_off, lose]
)
def test_damage_is_found(graph, spoil):
    folder = save(graph, partition(graph, 2, "random", 9))
    spoil(folder)
    with pytest.raises(DataError, match="is damaged; delete"):
        load(graph, 2, "random", 9)


def test_a_partition_of_another_graph_is_refused(graph):
    folder = save(graph, partition(graph, 2, "random", 11))
    meta = json.loads((folder / "partition.json").read_text())
    (folder / "partition.json").write_text(json.dumps({**meta, "graph": "0" * 64}))
    with pytest.raises(DataError, match="is of another graph"):
        load(graph, 2, "random", 11)
    with pytest.raises(UsageError, match="save it with the graph that it was made of"):
        save(graph, partition(graph_of([[], []]), 2, "random"))


def test_a_graph_that_is_not_of_the_store():
    with pytest.raises(UsageError, match="is not in the store"):
        load_or_make(graph_of([[], []]), 2, "random")
