"""Invalid ``meta.json`` files with a valid digest are refused with one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.prepare import load_dataset
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.arrays import write_graph
from gnnbench.datasets.store.partial import partial_folder
from gnnbench.datasets.store.reader import open_graph
from gnnbench.datasets.store.seal import sealed_stamp


@pytest.fixture
def stored(tmp_path: Path, arrays) -> Path:
    return write_graph(tmp_path / "tiny", name="tiny", num_classes=3, **arrays)


def rewrite(folder: Path, change: Any) -> None:
    meta = json.loads((folder / layout.META).read_bytes())
    change(meta)
    (folder / layout.META).write_text(layout.meta_text(meta))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


COUNTS = ["num_nodes", "num_edges", "feature_dim", "num_classes", "train", "val", "test"]
VALUES = [None, "5", -1, 2.5, 5.0, True, [5], {"a": 5}, 10**30, 1 << 48, nested(100)]
ENTRIES = [
    None, [], "file", 3, {"dtype": "int64"}, {"dtype": ["int64"], "shape": [6]},
    {"dtype": "int64", "shape": "6"}, {"dtype": "int64", "shape": [6.0]},
    {"dtype": "int64", "shape": [-6]}, {"dtype": "object", "shape": [6], "bytes": 48},
    {"dtype": "int64", "shape": [6], "bytes": 47}, {"dtype": "int64", "shape": [], "bytes": 8},
    {"dtype": "int64", "shape": [6], "bytes": 48, "file": "indptr.bin"},
    {"dtype": "int64", "shape": [2**40, 2**40], "bytes": 2**83, "made": "rows"},
    {"dtype": "int64", "shape": [6], "bytes": 48, "made": {}},
]  # fmt: skip


@pytest.mark.parametrize("key", COUNTS)
def test_invalid_counts_are_refused(stored: Path, key: str) -> None:
    for value in VALUES:
        rewrite(stored, lambda meta, value=value: meta.update({key: value}))
        with pytest.raises(DataError, match=rf"meta.json is malformed: '{key}' is ") as caught:
            open_graph(stored)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("entry", ENTRIES, ids=range(len(ENTRIES)))
def test_invalid_array_entries_are_refused(stored: Path, entry: Any) -> None:
    rewrite(stored, lambda meta: meta["arrays"].update(indptr=entry))
    with pytest.raises(DataError, match=r"meta.json is malformed: the entry of array 'indptr'"):
        open_graph(stored)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrays": []}, "'arrays' is a list of 0"),
        ({"arrays": {"other": {}}}, "'arrays' has the unknown array 'other'"),
        ({"arrays": {}}, "no usable array 'indptr'"),
        ({"name": 3}, "'name' is 3"),
        ({"num_classes": 100_001}, "'num_classes' is 100001, the maximum is 100000"),
        ({"name": None}, "'name' is None"),
        ({"notes": "all"}, "'notes' is 'all'"),
        ({"notes": [1]}, "'notes' is a list of 1"),
        ({"assumed": {"a": 1}}, "'assumed' is an object of 1"),
        ({"symmetric": "yes"}, "'symmetric' is 'yes'"),
        ({"fingerprint": 3}, "'fingerprint' is 3"),
        ({"train": 2}, r"'train_idx' in .* has shape \[3\] instead of \[2\]"),
        ({"num_nodes": 6}, r"'indptr' in .* has shape \[6\] instead of \[7\]"),
        ({"format": ["x"]}, "has format list"),
        ({"format_version": 10**5000}, "is damaged"),
    ],
)
def test_invalid_values_are_refused(stored: Path, change: dict[str, Any], message: str) -> None:
    if "format_version" in change:
        (stored / layout.META).write_text('{"format_version": 1' + "0" * 5000 + "}")
    else:
        rewrite(stored, lambda meta: meta.update(change))
    for opener in (open_graph, lambda path: load_dataset(str(path))):
        with pytest.raises(DataError, match=message):
            opener(stored)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{}", b"[1]", b"\xff\xfe", b" " * (1 << 25)])
def test_damaged_meta_files_are_refused(stored: Path, content: bytes) -> None:
    (stored / layout.META).write_bytes(content)
    with pytest.raises(DataError, match=r"meta.json is damaged"):
        open_graph(stored)


@pytest.mark.parametrize("made", ["", "nothing", "twin", "rows", "seeded"])
def test_features_of_an_unknown_generator_are_refused(stored: Path, made: str) -> None:
    def change(meta: dict[str, Any]) -> None:
        meta["arrays"]["features"] = {
            "dtype": "float32", "shape": [5, 3], "bytes": 60, "made": made,
        }  # fmt: skip
        meta["recipe"], meta["seed"] = {"num_nodes": "many"}, "none"

    rewrite(stored, change)
    with pytest.raises(DataError, match=r"'features' "):
        open_graph(stored)


def test_prepared_folder_is_not_imported(stored: Path, root: Path) -> None:
    with pytest.raises(UsageError, match=r"is a prepared graph; use it by its path"):
        import_source(stored, "again")


@pytest.mark.parametrize("state", ["[]", "3", "[" * 100_000, '{"fingerprint": {}, "arrays": [1]}'])
def test_invalid_state_of_an_interrupted_writer_is_ignored(
    tmp_path: Path, arrays, state: str
) -> None:
    partial = tmp_path / ".tiny.partial"
    partial.mkdir()
    (partial / "state.json").write_text(state)
    stored = write_graph(tmp_path / "tiny", name="tiny", num_classes=3, **arrays)
    assert open_graph(stored).num_nodes == 5
    assert not partial.exists()


def test_missing_licence_is_refused(stored: Path) -> None:
    rewrite(stored, lambda meta: meta.pop("licence"))
    with pytest.raises(DataError, match=r"meta.json is malformed: 'licence' is missing"):
        open_graph(stored)


def test_pipes_are_not_read(stored: Path, root: Path, tmp_path: Path) -> None:
    """Reading a pipe would block; a pipe as seal or as a writer's state counts as missing."""
    (stored / "seal.json").unlink(missing_ok=True)
    os.mkfifo(stored / "seal.json")
    assert sealed_stamp(stored) is None
    (stored / layout.META).unlink()
    os.mkfifo(stored / layout.META)
    with pytest.raises(DataError, match=r"meta.json is no file"):
        open_graph(stored)
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n1 2\n")
    state = partial_folder(root / "imported" / "mine") / "state.json"
    state.parent.mkdir(parents=True)
    os.mkfifo(state)
    assert open_graph(import_source(edges, "mine")).num_edges == 2
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(UsageError, match=r"pipe.txt is a pipe or a device"):
        import_source(tmp_path / "pipe.txt", "other")
