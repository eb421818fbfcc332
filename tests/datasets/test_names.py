"""Resolution of dataset names."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnnbench.core.errors import UsageError
from gnnbench.datasets.catalog import list_datasets
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.names import resolve
from gnnbench.datasets.prepare import load_dataset, prepare


@pytest.mark.parametrize(
    ("typed", "name", "kind", "scale", "sym"),
    [
        ("ogbn_arxiv", "ogbn_arxiv", "real", 1.0, False),
        ("arxiv", "ogbn_arxiv", "real", 1.0, False),
        ("ogbn-arxiv", "ogbn_arxiv", "real", 1.0, False),
        ("OGBN-Arxiv+sym", "ogbn_arxiv+sym", "real", 1.0, True),
        ("physics", "coauthor_physics", "real", 1.0, False),
        ("products~twin", "products~twin", "twin", 1.0, False),
        ("products~twin@1.0", "products~twin", "twin", 1.0, False),
        ("ogbn-products~twin@0.050", "products~twin@0.05", "twin", 0.05, False),
        ("papers100m~twin@0.01+sym", "papers100m~twin@0.01+sym", "twin", 0.01, True),
        ("tw~twin@0.010+weights", "twitter~twin@0.01+weights", "twin", 0.01, False),
        ("twitter~twin+sym+weights", "twitter~twin+sym+weights", "twin", 1.0, True),
    ],
)
def test_names_are_resolved(
    root: Path, typed: str, name: str, kind: str, scale: float, sym: bool
) -> None:
    ref = resolve(typed)
    assert (ref.name, ref.kind, ref.scale, ref.sym) == (name, kind, scale, sym)
    assert ref.folder_name() == name
    assert ref.folder_name(3) == f"{name}-seed3"
    assert ref.manifest is not None
    assert resolve(ref.name) == ref
    while (origin := ref.origin) is not None:
        assert resolve(origin.name) == origin
        assert ref.name in (f"{origin.name}+sym", f"{origin.name}+weights")
        ref = origin
    assert "+" not in ref.name


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("ogbn_arxvi", "did you mean 'ogbn_arxiv'?"),
        ("ogbn_arxvi+sym", "did you mean 'ogbn_arxiv+sym'?"),
        ("product~twin@0.05", "did you mean 'products~twin@0.05'?"),
        ("products~twn@0.05", "did you mean 'products~twin@0.05'?"),
        ("redit", "did you mean 'reddit'?"),
        ("zzzz", "known are"),
        ("", "known are"),
        ("products@0.05", "use 'products~twin@0.05'"),
        ("products~twin@", "must be a number above 0"),
        ("products~twin@abc", "must be a number above 0"),
        ("products~twin@0", "must be a number above 0"),
        ("products~twin@-1", "must be a number above 0"),
        ("products~twin@nan", "must be a number above 0"),
        ("products~twin@1e9", "up to 16"),
        ("twitter+weights", "is no generated graph"),
        ("ogbn_arxiv+sym+weights", "is no generated graph"),
        ("rows@2kx8+weights", "is no generated graph"),
        ("twitter~twin+weights+sym", "did you mean 'twitter~twin+sym'?"),
        ("nowhere/graph.npz", "there is no file nowhere/graph.npz"),
        ("nowhere/graph", "there is no file or folder 'nowhere/graph'"),
        ("nowhere/graph+sym", "there is no file or folder 'nowhere/graph'"),
        ("~nosuchuser/graph", "there is no file or folder '~nosuchuser/graph'"),
        ("a" * 5000, "cannot be opened (file name too long)"),
        ("a/" * 5000, "cannot be opened (file name too long)"),
        ("~/no/such/graph", "there is no file or folder '~/no/such/graph'"),
        ("/", "'/' is a folder without meta.json, so it is no prepared graph"),
    ],
)
def test_invalid_names_are_refused_with_a_hint(root: Path, typed: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(typed)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("edges.txt", "gnnbench data import edges.txt --name edges, then"),
        ("raw/My-graph.csv.gz", "gnnbench data import raw/My-graph.csv.gz --name my_graph, then"),
        ("two words.pt", "gnnbench data import 'two words.pt' --name two_words, then"),
    ],
)
def test_file_that_needs_an_import_names_the_command(
    root: Path, tmp_path: Path, typed: str, command: str
) -> None:
    (tmp_path / typed).touch()
    with pytest.raises(UsageError) as caught:
        resolve(typed)
    assert command in str(caught.value)


def test_missing_raw_folder_is_reported(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(tmp_path / "nowhere"))
    for call in (lambda: prepare("reddit"), list_datasets, lambda: resolve("unheard_of")):
        with pytest.raises(
            UsageError, match=r"GNNBENCH_REAL_DATA names .*nowhere, and there is no"
        ):
            call()
    assert resolve("products~twin").kind == "twin"


def test_files_and_folders_are_resolved(
    root: Path, make_npz, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_npz("my-graph.npz")
    by_path, by_name = resolve(str(path)), resolve("my-graph")
    assert (by_path.kind, by_path.path) == ("npz", path)
    assert (by_name.kind, by_name.path, by_name.name) == ("npz", path, "my_graph")
    assert resolve("my_graph+sym").sym
    with pytest.raises(UsageError, match="did you mean 'my_graph'"):
        resolve("my_graf")
    with pytest.raises(UsageError, match="has no twin"):
        resolve(f"{path}@0.5")
    stored = prepare(str(path))
    ref = resolve(str(stored))
    assert (ref.kind, ref.path) == ("store", stored)
    assert prepare(str(stored)) == stored


def test_changed_file_is_another_graph(root: Path, make_npz) -> None:
    path = make_npz()
    before = resolve(str(path)).folder_name()
    make_npz(note="changed")
    assert resolve(str(path)).folder_name() != before


def test_dataset_name_has_precedence_over_a_folder(root: Path, make_npz, tmp_path: Path) -> None:
    prepare(str(make_npz())).rename(tmp_path / "reddit")
    assert resolve("reddit").kind == "real"
    assert resolve("./reddit").kind == "store"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("mine@0.5", "'mine' is a graph of yours and has no twin; use 'mine'"),
        ("mine~twin", "'mine' is a graph of yours and has no twin; use 'mine'"),
        ("~nosuchuser/x.npz", "there is no file ~nosuchuser/x.npz"),
        ("/dev/null", "'/dev/null' is neither file nor folder"),
    ],
)
def test_variants_of_imported_graphs_and_bad_paths_are_refused(
    root: Path, tmp_path: Path, typed: str, message: str
) -> None:
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    import_source(tmp_path / "e.txt", "mine")
    with pytest.raises(UsageError, match=message):
        load_dataset(typed)
