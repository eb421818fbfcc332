"""Output and errors of ``gnnbench data import``."""

import json

import pytest


@pytest.fixture(autouse=True)
def edge_files(tmp_path, monkeypatch):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n")
    (tmp_path / "more.txt").write_text("0 1\n1 2\n2 0\n2 1\n")


def import_graph(said, file, *options):
    code, out, err = said("data", "import", file, "--name", "mine", "--symmetric", *options)
    assert (code, err.count("\n")) == (0, 0), err
    return out.splitlines()


def test_graph_is_stored_kept_and_replaced(said, tmp_path):
    counts = "3 nodes, 6 directed edges"
    first = import_graph(said, "edges.txt")
    assert first[0] == str(tmp_path / "store" / "imported" / "mine")
    assert first[1] == f"mine: {counts}"
    assert first[2] == "features: random, from the seed"
    again = import_graph(said, "edges.txt")
    assert again[1] == f"mine: stored already, from the same file with the same options; {counts}"
    code, out, err = said("data", "import", "more.txt", "--name", "mine", "--symmetric")
    assert (code, out) == (2, "") and "--replace" in err
    assert import_graph(said, "more.txt", "--replace")[1] == (
        f"mine: replaced the graph of that name; {counts}"
    )
    again = import_graph(said, "more.txt", "--replace", "--json")
    assert json.loads("\n".join(again))["state"] == "unchanged"


def test_output_lines_have_three_words_or_more(said, tmp_path):
    (tmp_path / "x.txt").write_text("1 2\n3 4\n5 6\n")
    lines = import_graph(said, "edges.txt", "--features", "x.txt")
    assert "features: those of the source" in lines
    assert [line for line in lines[1:] if len(line.split()) < 3] == []


@pytest.mark.parametrize(
    "source,message",
    [
        ("folder", "folder is a folder, and 'data import' takes a file"),
        ("folder", "'gnnbench data get NAME'"),
        ("ogbn_arxiv", "'gnnbench data get ogbn_arxiv'"),
        ("ogbn-arxiv", "there is no file ogbn-arxiv; 'gnnbench data get ogbn_arxiv'"),
        ("nosuch.txt", "there is no file nosuch.txt"),
        ("", "the source is empty"),
    ],
)
def test_source_that_is_no_file_is_refused(said, tmp_path, source, message):
    for name in ("folder", "ogbn_arxiv"):
        (tmp_path / name).mkdir()
    code, out, err = said("data", "import", source, "--name", "mine")
    assert (code, out, err.count("\n")) == (2, "", 1) and message in err
