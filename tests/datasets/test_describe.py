"""The commands ``data info``, ``data import`` and ``data list``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from gnnbench import cli
from gnnbench.datasets.catalog import info, list_datasets
from gnnbench.datasets.describe import describe
from gnnbench.datasets.manifest import manifests
from gnnbench.datasets.prepare import prepare
from gnnbench.harness import doctor


def call(monkeypatch: pytest.MonkeyPatch, capfd, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["gnnbench", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capfd.readouterr()
    return int(end.value.code or 0), out, err


@pytest.mark.parametrize("name", sorted(n for n, m in manifests().items() if not m.variant_of))
def test_info_contains_all_facts_of_a_manifest(root: Path, name: str) -> None:
    manifest = manifests()[name]
    text = "\n".join(describe(info(name)))
    flat = " ".join(text.split())
    for published in manifest.published:
        line = next(x for x in text.splitlines() if x.split()[:1] == [published.paper])
        assert published.nodes in line
        assert published.edges in line
        assert published.note in flat
    for note in (*manifest.notes, *(source.note for source in manifest.source)):
        assert " ".join(note.split()) in flat
    for words in (*manifest.assumed, manifest.licence, manifest.split, f"{manifest.num_nodes:,}"):
        assert words in flat
    assert "{" not in text
    for line in describe(info(f"{name}~twin@0.37"))[:3]:
        assert line.startswith((f"{name}~twin@0.37: twin of", "  kind", "  state"))


def test_info_describes_the_stored_graph(root: Path, make_npz) -> None:
    path = str(make_npz(split_origin="by hand"))
    assert "stored" not in describe(info(path))
    prepare(path)
    lines = describe(info(path))
    assert "stored" in lines
    assert "  split       3 / 1 / 1: by hand" in lines
    assert "  features    source" in lines


def test_import_from_the_command_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    (tmp_path / "edges.csv").write_text("source,target,weight\n10,20,1\n30,10,1\n")
    words = ("data", "import", "edges.csv", "--name", "mine", "--symmetric")
    options = ("--feature-dim", "8", "--classes", "3", "--train-fraction", "0.5", "--seed", "1")
    code, out, err = call(monkeypatch, capfd, *words, *options)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        str(root / "imported" / "mine"),
        "mine: 3 nodes, 4 directed edges",
        "features: random, from the seed",
        "labels: random, from the seed",
        "split: random 50/20/30, seed 1",
        "edges listed: 2; stored: 4, of 3 nodes, each in both directions",
        "edges that repeat another or its reverse: 0, merged",
        "ids were renumbered: 10..30 are nodes 0..2 in their order; that of node k is node_ids[k]",
        "not kept: weights (an .npz can hold weights)",
    ]
    assert "mine" in [d.name for d in list_datasets()]
    code, out, err = call(monkeypatch, capfd, *words, *options, "--json")
    assert json.loads(out)["num_edges"] == 4
    code, out, err = call(monkeypatch, capfd, *words)
    assert (code, out) == (2, "")
    assert "--replace" in err
    assert call(monkeypatch, capfd, *words, "--replace")[0] == 0
    code, _, err = call(monkeypatch, capfd, "data", "import", "edges.csv", "--name", "reddit")
    assert code == 2
    assert err.count("\n") == 1
    (tmp_path / "bad.csv").write_text("a,b\n")
    code, _, err = call(monkeypatch, capfd, "data", "import", "bad.csv", "--name", "bad")
    assert code == 6
    assert "neither an edge" in err
    code, out, _ = call(monkeypatch, capfd, "data", "info", "mine")
    assert "  features    64 float32, 0 MiB" in out.splitlines()


def test_import_requires_the_direction_of_edges(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    np.savez("adj.npz", indptr=[0, 2, 3, 3], indices=[1, 2, 2], year=np.arange(3))
    words = ("data", "import", "adj.npz", "--name", "mine")
    code, out, err = call(monkeypatch, capfd, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--rows targets" in err and "--symmetric" in err
    code, out, err = call(monkeypatch, capfd, *words, "--rows", "sources")
    assert (code, err) == (0, "")
    assert "not kept: year" in out.splitlines()


def test_import_with_node_files_from_the_command_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    np.save("x.npy", np.ones((4, 2)))
    (tmp_path / "y.txt").write_text("0\n1\n1\n0\n")
    (tmp_path / "split.txt").write_text("train\nval\ntest\ntrain\n")
    files = ("--features", "x.npy", "--labels", "y.txt", "--split", "split.txt")
    code, out, err = call(monkeypatch, capfd, "data", "import", "edges.txt", "--name", "a", *files)
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        "a: 4 nodes, 2 directed edges",
        "features: those of the source",
        "labels: those of the source",
        "split: those of the source",
        "edges listed: 2; stored: 2, of 4 nodes",
        "no edge has its reverse: if the graph is undirected and lists each edge once, import it"
        " again with --symmetric --replace",
        "nodes that no edge names: 1, kept",
    ]
    words = ("data", "import", "edges.txt", "--name", "b", "--features", "64")
    code, out, err = call(monkeypatch, capfd, *words)
    assert (code, out) == (2, "")
    assert "--feature-dim" in err


def test_list_shows_sizes_and_unwritable_stores(
    root: Path, tmp_path: Path, make_npz, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    folder = prepare(str(make_npz()))
    size = sum(file.stat().st_size for file in folder.iterdir())
    code, out, err = call(monkeypatch, capfd, "data", "list")
    assert (code, err) == (0, "")
    assert f"{size / 1024:.1f} KiB" in out
    assert "cannot be written" not in out
    _, out, _ = call(monkeypatch, capfd, "data", "list", "--json")
    assert [d["disk_bytes"] for d in json.loads(out) if d["disk_bytes"]] == [size]
    assert f"  on disk     {size / 2**20:,.1f} MiB" in describe(
        info(str(tmp_path / "raw/tiny.npz"))
    )

    (tmp_path / "file").touch()
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "file" / "store"))
    code, out, err = call(monkeypatch, capfd, "data", "list")
    assert out.splitlines()[-1] == (
        f"the store {tmp_path}/file/store cannot be written (Not a directory); "
        "set GNNBENCH_DATA to a folder that you may write"
    )
    code, out, err = call(monkeypatch, capfd, "data", "prepare", "-q", "rmat@4")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_doctor_reports_unusable_folders(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entry_of(what: str) -> tuple[bool, str]:
        (entry,) = [e for e in (doctor._store(), doctor._real_data()) if e["what"] == what]
        return entry["ok"], entry["found"] + entry["fix"]

    assert entry_of("store") == (True, f"{root} can be written")
    assert not root.exists()
    (tmp_path / "file").touch()
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "file"))
    assert not entry_of("store")[0]
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(tmp_path / "nowhere"))
    ok, text = entry_of("real data")
    assert not ok and "nowhere" in text
    assert doctor._datasets_or_none() == []
