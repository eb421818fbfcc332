"""``gnnbench data get``: downloads that are unpacked and prepared."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from file_server import Server

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets import download
from gnnbench.datasets.download_sources import Download, downloads, read_table
from gnnbench.datasets.manifest import manifests
from gnnbench.datasets.names import check_new_name, resolve
from gnnbench.datasets.prepare import load_dataset
from gnnbench.datasets.sources import how_to_get
from gnnbench.datasets.transport import RECORD


def graphsaint(classes: int = 3) -> dict[str, bytes]:
    """The raw files of a GraphSAINT graph: 0 <-> 1 <-> 2."""
    files = {"class_map.json": json.dumps({str(v): v % classes for v in range(3)}).encode()}
    files["role.json"] = json.dumps({"tr": [0], "va": [1], "te": [2]}).encode()
    for name, save in (
        (
            "adj_full.npz",
            lambda f: sp.save_npz(f, sp.csr_matrix([[0, 1, 0], [1, 0, 1], [0, 1, 0]])),
        ),
        ("feats.npy", lambda f: np.save(f, np.eye(3, 4, dtype=np.float32))),
    ):
        buffer = io.BytesIO()
        save(buffer)
        files[name] = buffer.getvalue()
    return files


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def flickr(server: Server, root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Download]:
    """A download table whose flickr is a tiny graph on the local server."""
    server.files["/flickr.zip"] = zipped(graphsaint())
    real = manifests()["flickr"]
    sources = [source.model_copy(update={"sha256": {}}) for source in real.source]
    counts = {"num_nodes": 3, "num_edges": 4, "feature_dim": 4, "num_classes": 3}
    small = real.model_copy(update={**counts, "source": sources})
    changed = {**manifests(), "flickr": small}
    monkeypatch.setattr("gnnbench.datasets.manifest._manifests_in", lambda _: changed)
    source = downloads()["flickr"].model_copy(update={"url": server.url + "/flickr.zip"})
    return {"flickr": source}


def test_archive_is_unpacked_and_prepared(server: Server, root: Path, flickr) -> None:
    folder = download.get("flickr", table=flickr)
    graph = load_dataset("flickr")
    assert graph.path == folder == root / "flickr"
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.meta["features"] == "source"
    raw = root / "raw"
    assert sorted(p.name for p in raw.iterdir() if p.name[0] != ".") == ["Flickr", RECORD]
    assert len(list((raw / "Flickr" / "raw").iterdir())) == 4
    assert download.get("Flickr", table=flickr) == folder
    assert len(server.requests) == 1


def test_two_processes_download_once(server: Server, root: Path, flickr, monkeypatch) -> None:
    """The second waits for the first and then uses its files."""
    both, waits, folders = threading.Barrier(2), threading.Event(), []
    resolve_once, fetch = download.resolve, download.download

    def together(*args: object) -> object:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(20)
        return resolve_once(*args)

    def slow(*args: object, **options: object) -> object:
        assert waits.wait(20)
        return fetch(*args, **options)

    def progress(step: str, *_: int) -> None:
        if step.startswith("wait for another process that downloads"):
            waits.set()

    monkeypatch.setattr(download, "resolve", together)
    monkeypatch.setattr(download, "download", slow)
    threads = [
        threading.Thread(
            target=lambda: folders.append(download.get("flickr", table=flickr, progress=progress))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folders == [root / "flickr"] * 2
    assert [path for path, _ in server.requests] == ["/flickr.zip"]
    assert load_dataset("flickr").indices.tolist() == [1, 0, 2, 1]


def test_web_page_is_no_edge_list(server: Server, root: Path) -> None:
    """As sent by a login portal. Its checksum does not block the next download."""
    server.files["/list.txt"] = b"\n<!DOCTYPE html><title>Log in</title>"
    table = {
        "list": Download(name="list", url=server.url + "/list.txt", host="here", licence="none")
    }
    with pytest.raises(DataError, match=r"list.txt is a web page, not an edge list"):
        download.get("list", table=table)
    server.files["/list.txt"] = b"0 1\n1 2\n"
    assert download.get("list", table=table).is_dir()
    assert load_dataset("list").num_edges == 2


def test_download_replaces_a_graph_of_a_lesser_source(server: Server, root: Path, flickr) -> None:
    bare = sp.csr_matrix([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    np.savez(root.parent / "raw" / "flickr.npz", indptr=bare.indptr, indices=bare.indices)
    poor = load_dataset("flickr")
    load_dataset("flickr+sym")
    assert poor.meta["features"] == "seeded"
    folder = download.get("flickr", table=flickr)
    assert folder == poor.path
    assert load_dataset("flickr").meta["features"] == "source"
    assert load_dataset("flickr+sym").features.tolist() == np.eye(3, 4).tolist()
    assert len(server.requests) == 1


def test_damaged_archive_is_removed(server: Server, root: Path, flickr) -> None:
    complete = server.files["/flickr.zip"]
    server.files["/flickr.zip"] = complete[:200] + b"x" * 40 + complete[240:]
    with pytest.raises(DataError, match=r"flickr.zip is truncated, damaged"):
        download.get("flickr", table=flickr)
    assert [p.name for p in (root / "raw").iterdir() if p.name[0] != "."] == []
    server.files["/flickr.zip"] = zipped({"other.txt": b""})
    with pytest.raises(DataError, match=r"has not the files that 'flickr' is made of"):
        download.get("flickr", table=flickr)


OTHERS = ["Reddit/raw/reddit_data.npz", "ogb/products/raw/edge.csv.gz", "mine.txt"]
HOSTILE = ["../../mine.txt", "/mine.txt", "../Reddit/x", "Yelp/raw/x", RECORD, "sub/../../x"]


def test_archive_writes_only_to_its_own_folder(server: Server, root: Path, flickr) -> None:
    """Other datasets, other files and the record of checksums stay unchanged."""
    raw = root / "raw"
    for name in OTHERS:
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_text("keep")
    (raw / RECORD).write_text("{}")
    names = {**dict.fromkeys(HOSTILE, b"no"), "../../Reddit/raw/reddit_data.npz": b"no"}
    server.files["/flickr.zip"] = zipped({**graphsaint(), **names})
    download.get("flickr", table=flickr)
    assert all((raw / name).read_text() == "keep" for name in OTHERS)
    assert flickr["flickr"].url in json.loads((raw / RECORD).read_text())
    files = {str(p.relative_to(raw)) for p in raw.rglob("*") if p.is_file() and p.name[0] != "."}
    own = {name for name in files if name.startswith("Flickr/raw/")}
    # Names such as "Yelp/raw/x" are unpacked below the archive's own folder.
    assert files - own == {*OTHERS, RECORD}
    assert not (root.parent / "mine.txt").exists()


def test_ogb_archive_does_not_change_other_datasets(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    (raw / "ogb" / "products").mkdir(parents=True)
    (raw / "ogb" / "products" / "keep").write_text("keep")
    archive = raw / "arxiv.zip"
    archive.write_bytes(zipped({"arxiv/raw/a": b"1", "products/raw/b": b"2", "readme": b"3"}))
    wanted = next(s.paths for s in manifests()["ogbn_arxiv"].source if "ogb/arxiv" in s.paths)
    assert download._unpack(archive, raw, "ogb", wanted, None) == [raw / "ogb" / "arxiv"]
    assert (raw / "ogb" / "arxiv" / "raw" / "a").read_bytes() == b"1"
    files = sorted(str(p.relative_to(raw)) for p in raw.rglob("*") if p.is_file())
    assert files == ["arxiv.zip", "ogb/arxiv/raw/a", "ogb/products/keep"]


def test_failed_download_does_not_block_the_next(server: Server, root: Path, flickr) -> None:
    """Its checksum is not recorded and its files are removed."""
    good = server.files["/flickr.zip"]
    server.files["/flickr.zip"] = zipped({**graphsaint(), "adj_full.npz": b"damaged"})
    with pytest.raises(DataError):
        download.get("flickr", table=flickr)
    left = [p for p in (root / "raw").rglob("*") if p.is_file() and p.name[0] != "."]
    assert left == []
    server.files["/flickr.zip"] = good
    assert download.get("flickr", table=flickr) == root / "flickr"

    url = server.url + "/d/e.txt.gz"
    source = Download(name="tiny", url=url, host="here", licence="none")
    server.files["/d/e.txt.gz"] = gzip.compress(b"<html>sorry</html>\n")
    with pytest.raises(DataError):
        download.get("tiny", table={"tiny": source})
    server.files["/d/e.txt.gz"] = gzip.compress(b"0 1\n1 2\n")
    download.get("tiny", table={"tiny": source})
    assert load_dataset("tiny").num_edges == 2


def test_downloaded_edge_list_has_its_name(server: Server, root: Path) -> None:
    server.files["/d/com.ungraph.txt.gz"] = gzip.compress(b"# Nodes: 3\n0\t1\n1\t2\n")
    source = Download(
        name="com_tiny", url=server.url + "/d/com.ungraph.txt.gz", host="here", licence="none",
        symmetric=True,
    )  # fmt: skip
    folder = download.get("Com-tiny", table={"com_tiny": source})
    graph = load_dataset("com_tiny")
    assert graph.path == folder
    assert graph.indices.tolist() == [1, 0, 2, 1]
    (root / "raw" / "com.ungraph.txt.gz").unlink()
    assert download.get("com_tiny", table={"com_tiny": source}) == folder
    assert len(server.requests) == 1


def test_names_without_a_download_are_refused(root: Path) -> None:
    with pytest.raises(UsageError, match=r"did you mean 'com_orkut'"):
        download.get("com-orcut")
    with pytest.raises(UsageError, match=r"known are .*com_dblp"):
        download.get("zzzz")
    with pytest.raises(UsageError, match=r"'wikipedia' cannot be downloaded; curl"):
        download.get("wikipedia")
    with pytest.raises(UsageError, match=r"get it with 'gnnbench data get com_orkut'"):
        resolve("com-orkut")


def test_download_table_agrees_with_manifests(root: Path, tmp_path: Path) -> None:
    for name, source in downloads().items():
        manifest = manifests().get(name)
        if manifest is None:
            assert check_new_name(name) == name
            assert source.file.endswith(".txt.gz")
            continue
        assert f"gnnbench data get {name}" in how_to_get(manifest, root)
        addresses = [s.url for s in manifest.source if s.url]
        assert not addresses or source.url in addresses
        assert not [s for s in manifest.source if s.sha256.get(source.file)] or source.sha256
        paths = [path for s in manifest.source for path in s.paths]
        where = source.to if source.file.endswith(".zip") else source.file
        assert any(path.startswith(where) for path in paths)
    wrong = tmp_path / "wrong.toml"
    for text in ("[[download]]\nname = 'a'\n", "download = 3\n", "[[download", ""):
        wrong.write_text(text)
        with pytest.raises(UsageError, match=r"cannot read the sources in"):
            read_table(wrong)
    entry = "[[download]]\nname='a'\nurl='http://x/a'\nhost='h'\nlicence='l'\n"
    wrong.write_text(entry + entry)
    with pytest.raises(UsageError, match=r"names a source twice"):
        read_table(wrong)


def test_ogb_addresses_agree_with_the_ogb_package(root: Path) -> None:
    nodeprop = pytest.importorskip("ogb.nodeproppred")
    import pandas as pd

    table = pd.read_csv(Path(nodeprop.__file__).parent / "master.csv", index_col=0)
    for ours, theirs in (
        ("ogbn_arxiv", "ogbn-arxiv"),
        ("products", "ogbn-products"),
        ("papers100m", "ogbn-papers100M"),
    ):
        assert downloads()[ours].url.removeprefix("https://") == table[theirs]["url"].removeprefix(
            "http://"
        )


def test_data_get_on_the_command_line(
    server: Server, root: Path, flickr, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    from test_describe import call

    code, out, err = call(monkeypatch, capfd, "data", "get", "--json")
    assert (code, err) == (0, "")
    assert downloads()["flickr"].model_dump() in json.loads(out)
    code, out, err = call(monkeypatch, capfd, "data", "get")
    assert [line.split()[0] for line in out.splitlines()[2:-1]] == [*downloads()]
    monkeypatch.setattr(download, "downloads", lambda: flickr)
    code, out, err = call(monkeypatch, capfd, "data", "get", "flickr")
    assert (code, out) == (0, f"{root / 'flickr'}\n")
    assert err == "flickr is from DGL, licence: none stated\n"
    code, out, err = call(monkeypatch, capfd, "data", "get", "zzzz")
    assert (code, out, err.count("\n")) == (2, "", 1)
