"""Folders that are searched for raw sources, and reasons why a store is not writable."""

from gnnbench.datasets.paths import find_raw, raw_folders, store_problem


def test_folders_near_the_working_folder_are_not_searched(tmp_path, monkeypatch):
    foreign = tmp_path / "shared" / "data"
    work = tmp_path / "work"
    for folder in (foreign, work):
        folder.mkdir(parents=True)
    (foreign / "graph.npz").write_text("not ours")
    monkeypatch.chdir(work)
    monkeypatch.delenv("GNNBENCH_REAL_DATA", raising=False)
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    assert raw_folders() == [tmp_path / "store" / "raw"]
    assert find_raw(["graph.npz"]) is None
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(foreign))
    assert find_raw(["graph.npz"]) == foreign / "graph.npz"


def test_store_below_a_file_is_not_writable(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written (Not a directory)" in store_problem(tmp_path / "file" / "store")
    assert store_problem(tmp_path / "new" / "store") == ""
    assert not (tmp_path / "new").exists()
