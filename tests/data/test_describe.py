"""``data info`` and ``data import`` as a user has them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gnnbench import cli
from gnnbench.data.catalog import info, list_datasets
from gnnbench.data.describe import describe
from gnnbench.data.manifest import manifests
from gnnbench.data.prepare import prepare


def call(monkeypatch: pytest.MonkeyPatch, capfd, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["gnnbench", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capfd.readouterr()
    return int(end.value.code or 0), out, err


@pytest.mark.parametrize("name", sorted(manifests()))
def test_everything_a_manifest_says_is_told(root: Path, name: str) -> None:
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


def test_what_is_stored_is_told(root: Path, make_npz) -> None:
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
    options = ("--features", "8", "--classes", "3", "--train-fraction", "0.5", "--seed", "1")
    code, out, err = call(monkeypatch, capfd, *words, *options)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        str(root / "imported" / "mine"),
        "mine: 3 nodes, 4 directed edges",
        "features: seeded",
        "labels: seeded",
        "split: random 50/20/30, seed 1",
        "ids of the source lie in 10..30, not in 0..n-1: node k is its node_ids[k]",
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
