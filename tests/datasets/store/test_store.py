"""The store: round trips, detection of damage, and atomic writes."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from gnnbench.core.errors import DataError, MissingError, NoGraphError, UsageError
from gnnbench.datasets import shared_memory
from gnnbench.datasets.graph import Graph
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.arrays import write_graph
from gnnbench.datasets.store.disk import graph_lock
from gnnbench.datasets.store.reader import open_graph, verify
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.kernels.shared import region_of

KEYS = list(layout.ARRAYS)


@pytest.fixture
def stored(tmp_path: Path, arrays) -> Path:
    return write_graph(tmp_path / "graph", name="tiny", num_classes=3, licence="CC0", **arrays)


def test_stored_graph_equals_its_arrays(stored: Path, arrays) -> None:
    graph = open_graph(stored)
    for key in KEYS:
        tensor = getattr(graph, key)
        assert np.array_equal(tensor.numpy(), arrays[key]), key
    assert graph.indptr.dtype == torch.int64
    assert graph.indices.dtype == torch.int32
    assert graph.features.dtype == torch.float32
    assert (graph.name, graph.num_nodes, graph.num_edges, graph.feature_dim) == ("tiny", 5, 7, 3)
    assert graph.num_classes == 3
    assert graph.path == stored
    assert graph.meta["symmetric"] is False
    assert graph.meta["licence"] == "CC0"
    assert graph.meta["train"] == 3
    assert sorted(p.name for p in stored.iterdir()) == sorted(
        ["meta.json", "seal.json", *(f"{key}.bin" for key in KEYS)]
    )


def test_int64_ids_stay_int64(tmp_path: Path, arrays) -> None:
    arrays["indices"] = arrays["indices"].astype(np.int64)
    graph = open_graph(write_graph(tmp_path / "wide", name="wide", num_classes=3, **arrays))
    assert graph.indices.dtype == torch.int64
    assert graph.indices.tolist() == arrays["indices"].tolist()


def test_graph_without_edges_and_with_empty_splits(tmp_path: Path, arrays) -> None:
    arrays["indptr"] = np.zeros(6, np.int64)
    arrays["indices"] = np.empty(0, np.int32)
    arrays["val_idx"] = arrays["test_idx"] = np.empty(0, np.int64)
    path = write_graph(tmp_path / "empty", name="empty", num_classes=3, **arrays)
    graph = open_graph(path)
    assert graph.num_edges == 0
    assert graph.val_idx.shape == (0,)
    assert verify(path).ok


def test_features_in_chunks_and_unsorted_splits(tmp_path: Path, arrays) -> None:
    whole = arrays.pop("features")
    arrays["train_idx"] = np.array([4, 0, 2])
    path = write_graph(
        tmp_path / "g",
        name="g",
        num_classes=3,
        features=iter([whole[:2], whole[2:]]),
        feature_dim=3,
        **arrays,
    )
    graph = open_graph(path)
    assert np.array_equal(graph.features.numpy(), whole)
    assert graph.train_idx.tolist() == [0, 2, 4]


def test_write_to_an_opened_tensor_does_not_change_the_file(stored: Path) -> None:
    open_graph(stored).features[:] = 0
    assert verify(stored).ok


@pytest.mark.parametrize("file", ["meta.json", *(f"{key}.bin" for key in KEYS)])
def test_verify_detects_every_flipped_byte(stored: Path, file: str) -> None:
    assert verify(stored).ok
    path = stored / file
    good = path.read_bytes()
    rng = np.random.default_rng(len(file))
    for position in {0, len(good) - 1, *rng.integers(0, len(good), 15).tolist()}:
        bad = bytearray(good)
        bad[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        report = verify(stored)
        assert not report.ok
        assert len(report.problems) == 1
        assert file in report.message
    path.write_bytes(good)
    assert verify(stored).ok


@pytest.mark.parametrize("file", ["meta.json", *(f"{key}.bin" for key in KEYS)])
@pytest.mark.parametrize("how", ["shorter", "longer", "missing"])
def test_open_refuses_files_of_the_wrong_length(stored: Path, file: str, how: str) -> None:
    path = stored / file
    raw = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(raw[:-1] if how == "shorter" else raw + b"\0")
    expected = NoGraphError if file == "meta.json" and how == "missing" else DataError
    with pytest.raises(expected, match=r"prepare") as caught:
        open_graph(stored)
    assert type(caught.value) is expected
    assert caught.value.exit_code == 6
    if expected is DataError:
        assert file in str(caught.value) or "meta.json" in str(caught.value)
        report = verify(stored)
        assert not report.ok
        assert file in report.message


@pytest.mark.parametrize("key", ["indptr", "indices", "labels", "train_idx"])
def test_open_refuses_indices_out_of_range(stored: Path, key: str) -> None:
    path = stored / f"{key}.bin"
    raw = bytearray(path.read_bytes())
    raw[10] ^= 0x40
    path.write_bytes(raw)
    with pytest.raises(DataError, match=rf"is damaged: {key} .* delete the folder"):
        open_graph(stored)


def test_meta_file_is_never_unpickled(stored: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    (stored / "meta.json").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError):
        open_graph(stored)
    assert not (tmp_path / "sprung").exists()


def test_another_format_version_is_refused(stored: Path) -> None:
    meta = layout.read_meta(stored)
    meta.pop("meta_sha256")
    (stored / "meta.json").write_text(layout.meta_text({**meta, "format_version": 99}))
    with pytest.raises(DataError, match="version 99"):
        open_graph(stored)


def test_folder_without_a_graph_is_missing(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(MissingError, match="gnnbench data prepare"):
            open_graph(path)


def test_unwritable_folder_is_a_usage_error(tmp_path: Path, arrays) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write below .*GNNBENCH_DATA") as caught:
        write_graph(tmp_path / "file" / "graph", name="g", num_classes=3, **arrays)
    assert caught.value.exit_code == 2


def test_full_disk_is_a_usage_error(
    tmp_path: Path, arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=50))
    with pytest.raises(UsageError, match=r"the disk of .* is full; free some space"):
        write_graph(tmp_path / "graph", name="g", num_classes=3, **arrays)
    assert [p.name for p in tmp_path.iterdir()] == [".graph.lock"]


def test_disk_that_fills_up_while_writing(
    tmp_path: Path, arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(UsageError, match="is full"):
        write_graph(tmp_path / "graph", name="g", num_classes=3, **arrays)
    assert [p.name for p in tmp_path.iterdir()] == [".graph.lock"]


def write_all(out: GraphWriter, arrays, stop_at: str | None = None) -> list[str]:
    """Write every array; return the names whose pieces were consumed."""
    produced = []

    def pieces(key: str):
        if key == stop_at:
            yield arrays[key][:1]
            raise KeyboardInterrupt
        produced.append(key)
        yield arrays[key]

    for key in KEYS:
        dtype = arrays[key].dtype.name
        out.write(key, dtype, arrays[key].shape, pieces(key))
    out.finish(name="g", num_classes=3)
    return produced


@pytest.mark.parametrize("stop_at", KEYS)
def test_interrupted_write_leaves_no_graph_and_resumes(
    tmp_path: Path, arrays, stop_at: str
) -> None:
    final = tmp_path / "graph"
    with pytest.raises(KeyboardInterrupt), GraphWriter(final, {"seed": 1}) as out:
        write_all(out, arrays, stop_at)
    assert not final.exists()
    with GraphWriter(final, {"seed": 1}) as out:
        produced = write_all(out, arrays)
    assert produced == KEYS[KEYS.index(stop_at) :]
    assert open_graph(final).indices.tolist() == arrays["indices"].tolist()
    assert verify(final).ok
    assert not out.folder.exists()


def test_changed_fingerprint_or_damage_restarts_the_write(tmp_path: Path, arrays) -> None:
    final = tmp_path / "graph"
    for change in ("fingerprint", "damage", "state"):
        with pytest.raises(KeyboardInterrupt), GraphWriter(final, {"seed": 1}) as out:
            write_all(out, arrays, "test_idx")
        if change == "damage":
            (out.folder / "indices.bin").write_bytes(b"x" * 28)
        if change == "state":
            (out.folder / "state.json").write_text("[")
        seed = 2 if change == "fingerprint" else 1
        with GraphWriter(final, {"seed": seed}) as out:
            produced = write_all(out, arrays)
        assert produced == (["indices", "test_idx"] if change == "damage" else KEYS)
        assert verify(final).ok


def test_error_leaves_no_files(tmp_path: Path, arrays) -> None:
    final = tmp_path / "graph"
    with pytest.raises(RuntimeError), GraphWriter(final, {}) as out:
        out.write("indptr", "int64", (6,), [arrays["indptr"]])
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_new_graph_replaces_an_old_one(tmp_path: Path, arrays) -> None:
    path = write_graph(tmp_path / "g", name="old", num_classes=3, **arrays)
    old = open_graph(path)
    write_graph(tmp_path / "g", name="new", num_classes=3, **arrays)
    assert open_graph(path).name == "new"
    assert old.indices.tolist() == arrays["indices"].tolist()  # its mapping stays valid
    assert sorted(p.name for p in tmp_path.iterdir()) == [".g.lock", "g"]


def test_scratch_arrays_are_removed(tmp_path: Path, arrays) -> None:
    final = tmp_path / "g"
    with GraphWriter(final, {}) as out:
        out.write("scratch_x", "int64", (None,), [np.arange(3), np.arange(2)])
        assert out.read("scratch_x").tolist() == [0, 1, 2, 0, 1]
        assert out.done("scratch_x")
        assert not out.done("indptr")
        for key in KEYS:
            out.write(key, arrays[key].dtype.name, arrays[key].shape, [arrays[key]])
        out.finish(name="g", num_classes=3)
    assert verify(final).ok
    assert not list(final.glob("scratch*"))


@pytest.mark.parametrize(
    ("dtype", "shape", "piece", "message"),
    [
        ("int32", (3,), np.array([0, 1]), "2 rows instead of 3"),
        ("int32", (1,), np.array([2**31]), "value 2147483648, beyond int32"),
        ("int32", (1,), np.array([0.5]), "type float64, int32 is expected"),
        ("int32", (1,), np.array(["a"]), "type <U1"),
        ("int32", (1,), np.array([[1]]), r"rows of shape \(1,\) instead of \(\)"),
        ("float32", (1,), np.array([1.0]), "no array 'indices' of type float32"),
    ],
)
def test_invalid_pieces_are_refused(tmp_path: Path, dtype, shape, piece, message: str) -> None:
    with pytest.raises(DataError, match=message), GraphWriter(tmp_path / "g", {}) as out:
        out.write("indices", dtype, shape, [piece])
    assert list(tmp_path.iterdir()) == []


def test_missing_array_is_named(tmp_path: Path, arrays) -> None:
    with pytest.raises(DataError, match="nothing was given for indices"):  # noqa: SIM117
        with GraphWriter(tmp_path / "g", {}) as out:
            out.write("indptr", "int64", (6,), [arrays["indptr"]])
            for key in KEYS[2:]:
                out.write(key, arrays[key].dtype.name, arrays[key].shape, [arrays[key]])
            out.finish(name="g", num_classes=3)


def test_lock_blocks_a_second_process(tmp_path: Path) -> None:
    import subprocess
    import sys

    final = tmp_path / "g"
    code = (
        "import sys; from pathlib import Path\n"
        "from gnnbench.datasets.store.disk import graph_lock\n"
        "with graph_lock(Path(sys.argv[1]), lambda: print('waiting', flush=True)): print('in')"
    )
    with graph_lock(final):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(final)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        assert child.poll() is None
    rest, _ = child.communicate(timeout=60)
    assert rest == "in\n"


def test_pickled_graph_is_mapped_from_its_folder(stored: Path) -> None:
    graph = open_graph(stored)
    text = pickle.dumps(graph)
    assert len(text) < 10_000
    again = pickle.loads(text)
    assert (again.name, again.path, again.meta) == (graph.name, graph.path, graph.meta)
    for key in KEYS:
        assert torch.equal(getattr(again, key), getattr(graph, key)), key


def test_pickled_graph_maps_shared_arrays(stored: Path) -> None:
    descriptor = shared_memory.share_file(layout.file_of(stored, "features"))
    shared_arrays = {"features": shared_memory.address_of(descriptor)}
    text = pickle.dumps(Graph.mapped(stored, layout.read_meta(stored), shared_arrays))
    again = pickle.loads(text)
    assert again.shared == shared_arrays and region_of(again.features) is not None
    assert torch.equal(again.features, open_graph(stored).features)
    os.close(descriptor)
    with pytest.raises(OSError):
        pickle.loads(text)


def test_pickled_graph_of_a_replaced_folder_is_refused(stored: Path, arrays) -> None:
    text = pickle.dumps(open_graph(stored))
    shutil.rmtree(stored)
    with pytest.raises(MissingError):
        pickle.loads(text)
    arrays["features"] = arrays["features"] + 1
    write_graph(stored, name="tiny", num_classes=3, licence="CC0", **arrays)
    with pytest.raises(DataError, match="another graph than when it was opened; open it anew"):
        pickle.loads(text)


def test_pickled_graph_in_memory_contains_its_arrays(small_graph) -> None:
    again = pickle.loads(pickle.dumps(small_graph))
    assert again.path is None
    assert torch.equal(again.indices, small_graph.indices)
