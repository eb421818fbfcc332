"""Text files of edges and nodes, compared with pandas and NetworkX."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import warnings
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.importers import edges as edges_module
from gnnbench.datasets.importers import textfile
from gnnbench.datasets.importers.edges import edge_pieces, sniff
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.importers.nodetext import node_text
from gnnbench.datasets.store.reader import open_graph


def parsed(path: Path) -> list[tuple[int, int]]:
    pieces = list(edge_pieces(path, sniff(path)))
    return [(int(u), int(v)) for piece in pieces for u, v in piece]


def write(folder: Path, text: str | bytes, name: str = "e.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


ACCEPTED = {
    "both comments": "# a\n% b\n0 1\n# c\n% d\n1 2\n",
    "another comment after an edge": "0 1\n% c\n1 2\n",
    "trailing comments": "0 1 # x\n1 2% y\n",
    "trailing comments with commas": "0,1# x, y\n1,2 # z\n",
    "indented comments": "   # a\n0 1\n\t% b\n1 2\n",
    "indented comments with commas": "   # a\n0,1\n\t% b\n1,2\n",
    "a long comment": "#" * 70_000 + "\n0 1\n1 2\n",
    "a comment of many words": "# ids: " + " ".join(map(str, range(20_000))) + "\n0 1\n1 2\n",
    "a comment without an end": "0 1\n1 2\n# the end",
    "a trailing comment without an end": "0 1\n1 2 # the end",
    "comments alone between": "0 1\n" + "# x\n" * 1000 + "1 2\n",
    "Windows": "# a\r\n0 1\r\n1 2\r\n",
    "old Mac": "# a\r0 1\r1 2\r",
    "mixed line ends": "0 1\r\n# a\r1 2\n",
    "byte-order mark": "\ufeff# a\n0 1\n1 2\n",
    "blank lines": "\n \n0 1\n\n\t\n1 2\n\n",
    "blank lines with commas": "\n \n0,1\n\n\t\n1,2\n\n",
    "no last line end": "0 1\n1 2",
    "leading zeros and signs": "00 +1\n001 02\n",
    "quotes": '"0","1"\n"1","2"\n',
    "a header below comments": "# a\n\n% b\nsource target # c\n0 1\n1 2\n",
    "a header and comments": "source,target\n# a\n0,1\n1,2 % b\n",
    "empty columns below a header": "source,target,year\n0,1,\n1,2,7\n",
    "quoted columns": 'source,target,n\n0,1,"a, b"\n1,2,"c"\n',
    "short rows below a header": "target,year,source\n1,2,0\n2,,1\n",
    "weights NA": "0 1 NA\n1 2 NA\n",
    "weights with decimal commas": "0;1;0,5\n1;2;1,5\n",
    "a column with a comma": "source\ttarget\tweight,year\n0\t1\t1,2\n1\t2\t2,3\n",
    "weights with exponents": "0 1 1e3\n1 2 2.5\n",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
@pytest.mark.parametrize("block", [1, 7, 1 << 24])
def test_text_files_that_are_accepted(tmp_path: Path, monkeypatch, text: str, block: int) -> None:
    """The result does not depend on the read block's size."""
    if block > 7 or len(text) < 1000:  # small blocks of a large file take seconds
        monkeypatch.setattr(textfile, "_BLOCK_BYTES", block)
    assert parsed(write(tmp_path, text)) == [(0, 1), (1, 2)]
    assert parsed(write(tmp_path, gzip.compress(text.encode()), "e.gz")) == [(0, 1), (1, 2)]


BIG = 2**53 + 1
REFUSED = [
    (f"0 1\n{BIG}.0 2\n", rf"line 2 of .* has '{BIG}.0' where the id of a node is expected"),
    ("0 1\n1.0 2\n", r"line 2 .* has '1.0' where"),
    ("0 1\n1e3 2\n", r"line 2 .* has '1e3' where"),
    ("0,1\n1,\n", r"line 2 .* has '' where"),
    ("0,,1\n1,,2\n", r"where two ids are expected|has '' where|neither an edge"),
    ("0 1 1\n1 2\n", r"line 2 .* has 2 of 3 columns"),
    ("0,1,1\n1,2,\n", r"line 2 .* has an empty column"),
    ("0 1\n1_0 2\n", r"line 2 .* has '1_0' where"),
    ("0 1\n0x1 2\n", r"line 2 .* has '0x1' where"),
    ("0 1\n1,5 2\n", r"line 2 .* has '1,5' where"),
    ("0 1\n\u0661 2\n", r"line 2 .* where the id of a node is expected"),
    ("0 1\n1 nan\n", r"line 2 .* has 'nan' where"),
    ("0 1\n1 inf\n", r"line 2 .* has 'inf' where"),
    ("0 1\n9223372036854775808 2\n", r"line 2 .* has an edge with node 9223372036854775808"),
    ("# a\n% b\n0 1\n\n1 x\n", r"line 5 .* has 'x' where"),
    ("0 1".encode("utf-16"), r"is UTF-16 or UTF-32; save it as UTF-8"),
    (b"0 1\n1 \x00 2\n", r"line 2 "),
    ("0 1 0.5\n1_0 2 0.5\n", r"line 2 .* has '1_0' where"),
    ("0 1 0.5\n\u0661 2 0.5\n", r"line 2 .* where the id of a node is expected"),
    (f"0 1 1\n{BIG}.0 2 1\n", rf"line 2 .* has '{BIG}.0' where"),
    ('source,target,n\n0,1,"a\n1,2,b\n2,3,c"\n', r"line 2 .* has a quote that is not closed"),
    ('0,1\n"1,2\n2,3\n', r"line 2 .* has 1 of 2 columns"),
    ("'0','1'\n'1','2'\n", r"neither an edge|two ids are expected"),
    ("0\u00a01\n1\u00a02\n", r"has '0.1' where two ids|neither an edge"),
    ("0 1\n1\x0b2\n", r"line 2 .* has 1 of 2 columns"),
    ("0 1\n" + "9" * 5000 + " 2\n", r"line 2 .* where the id of a node is expected"),
    ("0->1\n1->2\n", r"where two ids are expected"),
    ("0 1\n// x\n", r"line 2 .* has '//' where"),
    (bz2.compress(b"0 1\n"), r"is compressed by bzip2; decompress it"),
    (lzma.compress(b"0 1\n"), r"is compressed by xz; decompress it"),
    (b"\x28\xb5\x2f\xfd0 1", r"is compressed by zstd; decompress it"),
    ("% bip unweighted\n1 1\n1 2\n", r"is a bipartite graph of KONECT, .* add the number of the"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_text_files_that_are_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parsed(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_large_ids_are_exact(tmp_path: Path) -> None:
    ids = [2**53 + 1, 2**62 + 3, 2**63 - 1]
    for weight in ("", " 0.5"):
        text = "".join(f"{u} {v}{weight}\n" for u in ids for v in ids)
        assert parsed(write(tmp_path, text)) == [(u, v) for u in ids for v in ids]


node = st.integers(0, 2**63 - 1)
comment = st.sampled_from(["", " # c 1 2", "% 7", "#"])
line = st.one_of(
    st.tuples(node, node, comment).map(lambda t: f"{t[0]} {t[1]}{t[2]}"),
    st.sampled_from(["", "# only", "  % only", "\t"]),
)


@settings(max_examples=25, deadline=None)
@given(lines=st.lists(line, max_size=12), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_edges_equal_networkx(tmp_path_factory, lines: list[str], end: str) -> None:
    folder = tmp_path_factory.mktemp("lines")
    path = write(folder, end.join(["0 1", *lines]))
    plain = [text.split("%")[0].split("#")[0] for text in ["0 1", *lines]]
    oracle = nx.parse_edgelist(plain, create_using=nx.MultiDiGraph, nodetype=int, data=False)
    assert Counter(parsed(path)) == Counter((u, v) for u, v, _ in oracle.edges(keys=True))


@settings(max_examples=20, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=8),
    separator=st.sampled_from([" ", "\t", ",", ";", ", "]),
)
def test_features_equal_pandas(tmp_path_factory, rows, separator: str) -> None:
    text = "\n".join(separator.join(map(repr, row)) for row in rows)
    path = write(tmp_path_factory.mktemp("x"), text, "x.txt")
    oracle = pd.read_csv(
        io.StringIO(text), header=None, sep=r"\s+|\s*[,;]\s*", engine="python", dtype=float
    )
    assert np.array_equal(node_text(path, "features"), oracle.to_numpy())


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.integers(-1, 2**63 - 1), min_size=1, max_size=9))
def test_labels_are_exact(tmp_path_factory, values: list[int]) -> None:
    path = write(tmp_path_factory.mktemp("y"), "\n".join(map(str, values)), "y.txt")
    labels = node_text(path, "labels")
    assert labels.dtype == np.int64 and labels.tolist() == values


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("labels", "0\n\n1\n2\n3\n"),
        ("split", "train\n\nval\ntest\ntrain\n"),
        ("features", "0 0\n \n1 1\n2 2\n3 3\n"),
    ],
)
def test_empty_line_between_nodes_is_refused(tmp_path: Path, role: str, text: str) -> None:
    with pytest.raises(DataError, match=r"line 2 of .* is empty, and line 3 is not"):
        node_text(write(tmp_path, text), role)


def test_comments_and_trailing_empty_lines_are_no_nodes(tmp_path: Path) -> None:
    text = "# classes\n0 # first\n1\n% c\n-1\n\n\n"
    assert node_text(write(tmp_path, text), "labels").tolist() == [0, 1, -1]
    assert node_text(write(tmp_path, "\ufeff'train'\r\nval\r\n"), "split").tolist() == [
        "train", "val",
    ]  # fmt: skip
    assert node_text(write(tmp_path, "0\n1 # the end"), "labels").tolist() == [0, 1]
    assert node_text(write(tmp_path, "1,2\n# x\n3;4\n"), "features").tolist() == [[1, 2], [3, 4]]
    assert node_text(write(tmp_path, "0\n1.0\nnan\n"), "labels").tolist()[:2] == [0, 1]


@pytest.mark.parametrize(
    ("role", "text", "message"),
    [
        ("labels", "0\nx\n", "line 2 of .* has 'x'"),
        ("labels", "0\n1_0\n", "line 2 of .* has '1_0'"),
        ("labels", "0\n\u0661\n", "line 2 of .* has '\u0661'"),
        ("labels", "0\n1,\n", "line 2 of .* has nothing in column 2"),
        ("split", "train\nvalidate\n", "line 2 of .* has 'validate'"),
        ("split", "train\n" + "x" * 100_000 + "\n", "line 2 of .* has 'x{40}'; write"),
        ("features", "1,2\n3,,4\n", "line 2 of .* has nothing in column 2"),
        ("features", "1,2\n,4\n", "line 2 of .* has nothing in column 1"),
        ("features", "1;2\n0,5;1\n", "line 2 of .* has commas and semicolons"),
        ("features", "1 2\n1_0 2\n", "line 2 of .* has '1_0' in column 1"),
        ("features", "inf 2\n1 1e400\n", "line 2 of .* has '1e400' in column 2, beyond float64"),
        ("features", "1 2\n0x1 2\n", "line 2 of .* has '0x1' in column 1"),
        ("labels", "0 1\n", "line 1 of .* has 2 columns"),
        ("labels", "# none\n", "has no labels"),
        ("features", "1 2\n3\n", "line 2 of .* has 1 columns where the lines above have 2"),
        ("features", "1 2\n3 x\n", "line 2 of .* has 'x' in column 2"),
        ("features", "", "has no features"),
        ("features", "0,1,2\n.5,1,1\n", r"first row of .* counts the columns \(0 to 2\)"),
        ("features", ",".join(map(str, range(16))) + "\n" + "1," * 15 + "0", "counts the columns"),
        ("split", "train val\n", "line 1 of .* has 2 columns"),
    ],
)
def test_invalid_node_lines_are_refused(tmp_path: Path, role: str, text: str, message: str) -> None:
    with warnings.catch_warnings(), pytest.raises(DataError, match=message):
        warnings.simplefilter("ignore")  # numpy warns about empty files
        node_text(write(tmp_path, text), role)


def test_missing_label_is_refused_and_extra_label_is_a_node(root: Path, tmp_path: Path) -> None:
    edges = write(tmp_path, "0 1\n1 2\n2 3\n3 0\n")
    for text in ("0\n1\n2\n", "0\n1\n2\n0\n1\n"):
        labels = write(tmp_path, text, "y.txt")
        if text.count("\n") == 3:
            with pytest.raises(DataError, match=r"node 3, outside 0\.\.2: '.*y.txt' has 3"):
                import_source(edges, "mine", labels=labels)
        else:
            graph = open_graph(import_source(edges, "mine", labels=labels))
            assert graph.num_nodes == 5 and graph.labels.tolist() == [0, 1, 2, 0, 1]


def test_edge_list_is_refused_on_a_nearly_full_disk(
    root: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(edges_module, "free_disk_bytes", lambda folder: 1 << 20)
    with pytest.raises(UsageError, match="nearly full after 0 edges"):
        import_source(write(tmp_path, "0 1\n"), "mine")


def test_overlong_line_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(textfile, "_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(textfile, "LINE_BYTES", 1 << 12)
    with pytest.raises(DataError, match="a line is longer"):
        parsed(write(tmp_path, "0 1\n" + "1" * 10_000 + "\n"))


def test_first_row_of_consecutive_numbers_may_be_a_node(tmp_path: Path) -> None:
    """A row 0, 1, 2 above whole numbers, or 0, 1 above any, is no header."""
    for text, rows in (
        ("0 1 2\n3 4 5\n", [[0, 1, 2], [3, 4, 5]]),
        ("0 1\n.5 1\n", [[0, 1], [0.5, 1]]),
    ):
        assert node_text(write(tmp_path, text), "features").tolist() == rows


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("3 2\n1 2\n2 3\n", "3 2"),  # ids from 1: the largest is the number of nodes
        ("4 4\n2 4\n1 3\n2 4\n1 3\n", "4 4"),  # METIS, of a graph whose degrees are all 2
        ("% a banner was here\n5 5 3\n1 2 0.5\n2 3 1\n4 5 2\n", "5 5 3"),  # Matrix Market
        ("4 3 2\n1 3 1\n4 2 1\n", "4 3 2"),
    ],
)
def test_first_line_of_counts_is_refused(root: Path, tmp_path: Path, text, first) -> None:
    with pytest.raises(DataError, match=rf"\('{first}'\) tells how many nodes and edges"):
        import_source(write(tmp_path, text), "mine")


def test_skipped_lines_are_reported(root: Path, tmp_path: Path) -> None:
    edges = write(tmp_path, "# a\n% b\n\n0 1 # c\n \n\n1 2\n2 0 # d")
    labels = write(tmp_path, "# classes\n0\n1 # x\n2\n\n", "y.txt")
    split = write(tmp_path, "train\nval # y\ntest\n", "s.txt")
    graph = open_graph(import_source(edges, "mine", labels=labels, split=split))
    assert graph.num_edges == 3 and graph.labels.tolist() == [0, 1, 2]
    assert [note for note in graph.meta["notes"] if "skipped" in note] == [
        "skipped in e.txt: comments (4), empty lines (3)",
        "skipped in y.txt: comments (2), empty lines (1)",
        "skipped in s.txt: comments (1)",
    ]


def test_ignored_columns_are_named(root: Path, tmp_path: Path) -> None:
    for text, note in (
        (",source,target\n0,5,7\n1,7,9\n", "not kept: column 1 "),  # pandas' index
        ("0,5,7\n1,7,9\n2,9,5\n", "not kept: weights in column 3 "),
    ):
        graph = open_graph(import_source(write(tmp_path, text), "mine", replace_graph=True))
        assert any(line.startswith(note) for line in graph.meta["notes"])
        counted = any("first column counts the lines" in note for note in graph.meta["notes"])
        assert counted == (text[0] == "0")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"val": [1], "test": [2]}, "has no training nodes .'train'., but test, val"),
        ({"train": [0, 0], "val": [1]}, "'train' in .*s.npz lists node 0 twice"),
        ({"train": [0, 9], "val": [1]}, r"'train' in .*s.npz has node 9, outside 0\.\.2"),
        ({"train": [-1], "val": [1]}, r"'train' in .*s.npz has node -1, outside 0\.\.2"),
    ],
)
def test_invalid_splits_are_refused(root: Path, tmp_path: Path, arrays, message: str) -> None:
    np.savez(tmp_path / "s.npz", **{k: np.array(v) for k, v in arrays.items()})
    with pytest.raises(DataError, match=message):
        import_source(write(tmp_path, "0 1\n1 2\n"), "mine", split=tmp_path / "s.npz")


def test_ignored_content_of_given_files_is_reported(root: Path, tmp_path: Path) -> None:
    """Nodes in two parts of a split, other arrays, labels that are all -1, an empty part."""
    parts = {"train": np.array([0, 1]), "val": np.array([1]), "test": np.array([])}
    np.savez(tmp_path / "s.npz", **parts, unlabelled=np.array([2, 0]))
    np.savez(tmp_path / "x.npz", x=np.ones((3, 2)), y=np.zeros(3), num_nodes=np.array([3]))
    graph = open_graph(
        import_source(
            write(tmp_path, "0 1\n1 2\n"), "mine", split=tmp_path / "s.npz",
            features=tmp_path / "x.npz", labels=write(tmp_path, "-1\n-1\n-1\n", "y.txt"),
        )
    )  # fmt: skip
    assert [len(p) for p in (graph.train_idx, graph.val_idx, graph.test_idx)] == [2, 1, 0]
    assert graph.meta["notes"][-4:] == [
        "no node has a label: random ones take the place of the source's",
        f"not kept of {tmp_path / 'x.npz'}: y",
        f"not kept of {tmp_path / 's.npz'}: unlabelled",
        "nodes in train and in val: 1, kept in both",
    ]


def test_non_finite_features_are_refused(root: Path, tmp_path: Path) -> None:
    features = write(tmp_path, "1 2\n3 nan\n4 5\n", "x.txt")
    with pytest.raises(DataError, match=r"'features' in .*x.txt has nan for node 1, in column 1"):
        import_source(write(tmp_path, "0 1\n1 2\n"), "mine", features=features)
