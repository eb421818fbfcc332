"""Preparing datasets by name: once, resumable, atomic, with hints for missing sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gnnbench.core.errors import DataError, MissingError, UsageError
from gnnbench.datasets import manifest as manifest_module
from gnnbench.datasets import prepare as prepare_module
from gnnbench.datasets.catalog import info, list_datasets, store_bytes, verify
from gnnbench.datasets.describe import describe
from gnnbench.datasets.manifest import Manifest
from gnnbench.datasets.prepare import load_dataset, prepare, prepare_verified
from gnnbench.datasets.store import reader
from gnnbench.datasets.store.seal import sealed_stamp
from gnnbench.sampling.build import build_sampler


def folders(root: Path) -> list[str]:
    return sorted(p.name for p in root.iterdir() if not p.name.endswith(".lock"))


def test_second_call_returns_the_prepared_graph(root: Path, make_npz, monkeypatch) -> None:
    path = str(make_npz())
    first = prepare(path)
    written = (first / "meta.json").stat().st_mtime_ns
    monkeypatch.setattr(prepare_module, "make_graph", None)
    assert prepare(path) == first
    assert (first / "meta.json").stat().st_mtime_ns == written


def test_graph_with_truncated_file_is_prepared_again(root: Path, make_npz) -> None:
    path = str(make_npz())
    stored = prepare(path)
    (stored / "indices.bin").write_bytes(b"")
    assert prepare(path) == stored
    assert verify(path).ok


def test_every_byte_is_verified_once(root: Path, monkeypatch) -> None:
    """A written graph is sealed; a graph that shares files of another one is verified."""
    verified = []
    known = reader.verify
    monkeypatch.setattr(reader, "verify", lambda path: verified.append(path.name) or known(path))
    folder, sealed = prepare_verified("rmat@6")
    assert verified == [] and sealed == sealed_stamp(folder) and known(folder).ok
    assert prepare_verified("rmat@6") == (folder, sealed) and verified == []
    for _ in range(2):
        prepare_verified("rmat@6+sym")
        assert verified == ["rmat@6+sym"]
    prepare_verified("rmat@6")  # its files have one more hard link
    assert verified == ["rmat@6+sym", "rmat@6"]
    with (folder / "labels.bin").open("r+b") as file:
        file.write(b"\xff")
    for name in ("rmat@6", "rmat@6+sym", "rmat@6"):
        with pytest.raises(DataError, match=r"labels\.bin changed"):
            prepare_verified(name)


def test_symmetric_version_has_reverse_edges(root: Path, make_npz) -> None:
    graph = load_dataset(str(make_npz()) + "+sym")
    # 0 - 1, 0 - 2, the self-loop of 1 once, 1 - 4, 3 - 4
    assert graph.indptr.tolist() == [0, 2, 5, 6, 7, 9]
    assert graph.indices.tolist() == [1, 2, 0, 1, 4, 0, 4, 1, 3]
    assert graph.meta["symmetric"] is True
    assert graph.meta["licence"] == "CC0"
    base = load_dataset(str(make_npz()))
    for key in ("features", "labels", "train_idx", "val_idx", "test_idx"):
        assert np.array_equal(getattr(graph, key), getattr(base, key))


@pytest.mark.parametrize("stop_at", ["indptr", "labels", "features", "check"])
def test_interrupted_preparation_leaves_no_graph_and_resumes(
    root: Path, make_npz, stop_at: str
) -> None:
    path = str(make_npz())

    def interrupt(step: str, done: int, total: int) -> None:
        if step == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(path, progress=interrupt)
    assert all(name.startswith(".") for name in folders(root))
    steps: list[str] = []
    stored = prepare(path, progress=lambda step, done, total: steps.append(step))
    assert folders(root) == [stored.name]
    assert verify(path).ok
    if stop_at == "features":
        assert "labels" not in steps
        assert "features" in steps


def start_child(code: str, path: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, path, str(folder)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


PREPARE = """
import os, sys, time
from gnnbench.datasets.prepare import prepare
def progress(step, done, total):
    {act}
print(prepare(sys.argv[1], root=sys.argv[2], progress=progress))
"""


def test_preparation_resumes_after_a_killed_process(root: Path, make_npz) -> None:
    path = str(make_npz())
    kill = PREPARE.format(act="if step == 'features': os.kill(os.getpid(), 9)")
    child = start_child(kill, path, root)
    child.communicate(timeout=60)
    assert child.returncode == -9
    assert all(name.startswith(".") for name in folders(root))
    steps: list[str] = []
    prepare(path, progress=lambda step, done, total: steps.append(step))
    assert "labels" not in steps
    assert "features" in steps
    assert verify(path).ok


def test_two_processes_prepare_once(root: Path, make_npz) -> None:
    path = str(make_npz())
    code = PREPARE.format(act="time.sleep(0.05)")
    children = [start_child(code, path, root) for _ in range(2)]
    outputs = [child.communicate(timeout=60) for child in children]
    assert [child.returncode for child in children] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert verify(path).ok
    assert len(folders(root)) == 1


def test_progress_counts_bytes(root: Path, make_npz) -> None:
    seen: dict[str, tuple[int, int]] = {}
    prepare(str(make_npz()), progress=lambda step, done, total: seen.update({step: (done, total)}))
    assert seen["features"] == (60, 60)
    assert seen["indices"] == (28, 28)


def test_unwritable_root_is_a_usage_error(root: Path, make_npz) -> None:
    root.write_text("a file, not a folder")
    with pytest.raises(UsageError, match="cannot write below"):
        prepare(str(make_npz()))


def test_missing_source_names_its_download(root: Path) -> None:
    with pytest.raises(MissingError) as caught:
        prepare("reddit")
    message = str(caught.value)
    assert "https://data.dgl.ai/dataset/reddit.zip" in message
    assert f"{root}/raw/Reddit/raw" in message
    assert "'reddit~twin'" in message
    assert caught.value.exit_code == 6


@pytest.fixture
def tiny(root: Path, make_npz, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """Replaces the shipped manifests by one of the tiny graph."""
    from gnnbench.datasets.store.layout import sha256_file

    path = make_npz("tiny.npz")
    values = {
        "schema_version": 1,
        "name": "tiny",
        "description": "by hand",
        "licence": "CC0",
        "num_nodes": 5,
        "num_edges": 7,
        "feature_dim": 3,
        "num_classes": 3,
        "train_size": 3,
        "val_size": 1,
        "test_size": 1,
        "split": "by hand",
        "symmetric": False,
        "source": [
            {
                "loader": "npz",
                "paths": ["tiny.npz"],
                "get": "make it",
                "sha256": {"tiny.npz": sha256_file(path)},
            }
        ],
    }
    manifest = Manifest.model_validate(values)
    monkeypatch.setattr(manifest_module, "_manifests_in", lambda _: {"tiny": manifest})
    return manifest


def test_prepare_by_name_of_a_manifest(tiny: Manifest, root: Path) -> None:
    stored = prepare("tiny")
    assert stored == root / "tiny"
    assert verify("tiny").ok
    assert info("tiny").summary.state == "prepared"
    assert info("tiny").bytes == 48 + 28 + 60 + 40 + 40


def test_file_with_another_checksum_is_refused(tiny: Manifest, make_npz) -> None:
    make_npz("tiny.npz", note="another")
    with pytest.raises(DataError, match=r"tiny.npz is not the file that the manifest describes"):
        prepare("tiny")


def test_counts_other_than_the_manifests_are_refused(
    tiny: Manifest, root: Path, monkeypatch
) -> None:
    other = tiny.model_copy(update={"num_edges": 8})
    monkeypatch.setattr(manifest_module, "_manifests_in", lambda _: {"tiny": other})
    with pytest.raises(DataError, match="gives 5 nodes, 7 edges and 3 features"):
        prepare("tiny")
    assert folders(root) == []


def test_catalog_reports_states_and_counts(root: Path, make_npz) -> None:
    make_npz("mine.npz")
    listed = {d.name: d for d in list_datasets()}
    assert listed["reddit"].state == "missing"
    assert not listed["reddit"].available
    assert listed["reddit"].get.startswith("gnnbench data get reddit; or curl ")
    assert listed["products~twin"].state == "generated"
    assert listed["products~twin"].num_nodes == 2_449_029
    assert listed["mine"].state == "source"
    prepare("mine")
    assert {d.name: d for d in list_datasets()}["mine"].state == "prepared"
    assert info("products~twin@0.01").summary.num_nodes == 24_490
    assert info("products").manifest is not None
    assert any("61,859,140" in note for note in info("products").notes)
    with pytest.raises(MissingError, match="is not prepared"):
        verify("reddit")


def test_stored_graphs_are_listed_with_their_size(root: Path, make_npz) -> None:
    folder = prepare(str(make_npz()))
    sym = prepare("rmat@4+sym", seed=1)
    sizes = {d.path: (d.name, d.state, d.disk_bytes) for d in list_datasets() if d.disk_bytes}
    assert sizes == {
        path: (name, "prepared", sum(file.stat().st_size for file in path.iterdir()))
        for path, name in ((folder, str(root.parent / "raw" / "tiny.npz")), (sym, "rmat@4+sym"))
        for path in [path]
    } | {
        path: ("rmat@4", "prepared", sum(file.stat().st_size for file in path.iterdir()))
        for path in [root / "rmat@4-seed1"]
    }
    shared = sum((sym / f"{k}.bin").stat().st_size for k in ("features", "labels"))
    total = sum(size for _, _, size in sizes.values())
    assert total - 2 * shared < store_bytes() <= total - shared + 4096
    (folder / "labels.bin").write_bytes(b"")
    damaged = {d.path: d for d in list_datasets()}[folder]
    assert damaged.state == "missing" and "labels.bin" in damaged.missing


def test_name_of_another_type_is_refused(root: Path) -> None:
    for wrong in (np.zeros(3), 7, None, load_dataset("rmat@4")):
        with pytest.raises(UsageError, match=f"no {type(wrong).__name__}; .* from_pyg or from_dgl"):
            load_dataset(wrong)  # type: ignore[arg-type]


def test_repr_of_a_graph(root: Path, make_npz) -> None:
    text = repr(load_dataset("rmat@4"))
    assert (
        text == "Graph('rmat@4', 16 nodes, 938 edges, features 1 wide, 2 classes, 16 to train on)"
    )
    weighted = load_dataset(str(make_npz(weights=np.ones(7))))
    assert ", 7 edges, weighted, features 3 wide" in repr(weighted)


def test_catalog_does_not_import_torch() -> None:
    code = "import sys; from gnnbench.datasets.catalog import list_datasets; list_datasets(); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_real_arxiv_has_its_counts(
    real_data: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(real_data))
    graph = load_dataset("arxiv")
    assert (graph.num_nodes, graph.num_edges, graph.feature_dim) == (169_343, 1_166_243, 128)
    assert (graph.num_classes, graph.train_idx.numel()) == (40, 90_941)
    assert int((graph.indptr.diff() == 0).sum()) == 62_006
    assert int(graph.indptr.diff().max()) == 13_155
    assert graph.meta["symmetric"] is False
    assert graph.meta["features"] == "seeded"
    # Compare with the npz as read by numpy.
    with np.load(real_data / "ogbn_arxiv.npz", allow_pickle=False) as raw:
        assert np.array_equal(graph.indices.numpy(), raw["indices"])
        assert np.array_equal(graph.labels.numpy(), raw["labels"])

    both = load_dataset("arxiv+sym")
    assert both.num_edges == 2_315_598  # the published count of the symmetric graph
    assert both.meta["symmetric"] is True
    assert verify("arxiv+sym").ok


def test_real_computers_has_its_counts(
    real_data: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(real_data))
    graph = load_dataset("amazon_computers")
    assert (graph.num_nodes, graph.num_edges, graph.feature_dim) == (13_752, 491_722, 767)
    assert graph.meta["symmetric"] is True
    with np.load(real_data / "amazon_computers.npz", allow_pickle=False) as raw:
        row = slice(raw["feat_indptr"][7], raw["feat_indptr"][8])
        assert np.flatnonzero(graph.features[7]).tolist() == sorted(raw["feat_indices"][row])
    assert verify("amazon_computers").ok


def test_twin_is_stored_by_name_scale_and_seed(root: Path) -> None:
    from gnnbench.kernels.library import load_native

    load_native()
    stored = prepare("products~twin@0.001", seed=2)
    assert stored.name == "products~twin@0.001-seed2"
    graph = load_dataset("products~twin@0.001", seed=2)
    assert graph.num_nodes == 2449
    assert graph.meta["symmetric"] is True
    assert graph.meta["seed"] == 2
    assert verify("products~twin@0.001", seed=2).ok


def test_weighted_twin_shares_files_with_its_twin(root: Path) -> None:
    from gnnbench.kernels.library import load_native

    load_native()
    name = "twitter~twin@0.0002+weights"
    graph, base = load_dataset(name), load_dataset("twitter~twin@0.0002")
    assert base.weights is None and graph.weights is not None
    assert graph.weights.unique().tolist() == list(range(1, 17))
    assert graph.meta["assumed"] == ["weights"] and graph.meta["weights"].startswith("seeded: ")
    for key in ("indptr", "indices", "features", "labels", "train_idx"):
        ours, theirs = ((one.path / f"{key}.bin").stat() for one in (graph, base))
        assert ours.st_ino == theirs.st_ino, key
    assert verify(name).ok
    assert any("weights     seeded: the year" in line for line in describe(info(name)))
    # Neighbours are sampled in proportion to their weights.
    sampler = build_sampler(
        "gnnlab", graph, [4], pick="weighted_alias", weights="graph", with_positions=True
    )
    block = sampler.sample(graph.train_idx, 0, 0).blocks[0]
    picked = graph.weights[block.positions.long()].double()
    rows = [graph.weights[graph.indptr[v] : graph.indptr[v + 1]].double() for v in graph.train_idx]
    expected = sum(float((row * row).sum() / row.sum()) for row in rows if len(row))
    uniform = sum(float(row.mean()) for row in rows if len(row))
    drawn = float(picked.sum()) / 4
    assert abs(drawn - expected) < 0.05 * expected < expected - uniform
    both = load_dataset("twitter~twin@0.0002+sym+weights")
    assert both.meta["symmetric"] and len(both.weights) == both.num_edges > graph.num_edges


def test_prepared_folder_with_a_suffix_is_opened(root: Path) -> None:
    folder = prepare("rmat@6+sym+weights")
    assert load_dataset(folder).weights is not None
    assert load_dataset(prepare("rmat@6+sym")).path == root / "rmat@6+sym"
    with pytest.raises(UsageError, match="no generated graph"):
        load_dataset(f"{prepare('rmat@6')}+weights")


def test_edge_list_is_loaded_by_path(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "My graph.edges.tsv"
    path.write_text("0\t1\n2\t1\n1\t0\n")
    graph = load_dataset(path)
    assert graph.indptr.tolist() == [0, 1, 3, 3] and graph.indices.tolist() == [1, 0, 2]
    assert graph.path is not None and graph.path.parent == root / "imported"
    assert load_dataset(str(path)).path == graph.path
    path.write_text("0\t1\n")
    other = load_dataset(path)
    assert other.num_edges == 1 and other.path != graph.path
    assert load_dataset(str(graph.path)).num_edges == 3
    (tmp_path / "data.pt").write_bytes(b"x")
    with pytest.raises(DataError, match=r"data.pt is truncated, damaged"):
        load_dataset(tmp_path / "data.pt")
