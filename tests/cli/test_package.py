"""What ``gnnbench new`` writes is tested, found and timed as it stands, once it is installed."""

import csv
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gnnbench.cli.package_template import write
from gnnbench.core import registry
from gnnbench.core.errors import UsageError
from gnnbench.harness import available, environment
from gnnbench.kernels.library import native_info

# Few epochs of few batches: what is measured does not matter here.
QUICK = ("--profile", "smoke", "--repeats", "1", "-o", "rounds=2", "-o", "max_batches=2", "-o")
SAMPLING = ("sampling", *QUICK, "baseline.sampler=hop-by-hop")
BREAKDOWN = ("breakdown", *QUICK, "fanouts=[4,3]", "--models", "gcn")


@pytest.fixture
def installed(monkeypatch):
    """Has this process, and those that it starts, find a package as one that is installed."""

    def install(folder):
        describe(folder)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.syspath_prepend(str(folder))
        forget()

    yield install
    monkeypatch.undo()
    forget()


def forget():
    """What was found before."""
    found = registry._installed, registry.entries
    for cache in (*found, available.availability, environment.dataset_state):
        cache.cache_clear()


def describe(folder):
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    about = folder / f"{project['name']}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [
        line
        for group, names in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("kind,run", [("sampler", SAMPLING), ("system", BREAKDOWN)])
def test_a_new_package_passes_its_test_and_is_timed(kind, run, tmp_path, installed, said):
    if not native_info()["cpu_built"]:
        pytest.skip("the native library is not built; run 'make install'")
    name = f"own_{kind}"
    files = write(kind, name, tmp_path / "package")
    assert [f.name for f in files] == ["pyproject.toml", f"{name}.py", f"test_{name}.py"]
    installed(tmp_path / "package")
    tests = [sys.executable, "-m", "pytest", "-q", "package", "-p", "no:cacheprovider"]
    assert "2 passed" in subprocess.run(tests, capture_output=True, text=True).stdout
    assert name in said("list")[1]
    code, out, error = said("run", *run, "--systems", f"baseline,{name}", "-q")
    assert code == 0, out + error
    (cells,) = tmp_path.glob("results/*/run-*/cells.csv")
    with cells.open() as file:
        rows = {row["system"]: row for row in csv.DictReader(file)}
    assert {n: row["status"] for n, row in rows.items()} == {"baseline": "ok", name: "ok"}
    work = "equivalent" if kind == "sampler" else "identical"
    assert (rows[name]["work_class"], rows[name]["verified"]) == (work, "true")


@pytest.mark.parametrize(
    "name,words",
    [
        ("my-own", "'my-own' cannot be the name of a Python module; take one like 'my_own'"),
        ("class", "'class' cannot be the name of a Python module; take one like 'my_sampler'"),
        ("", "'' cannot be the name of a Python module; take one like 'my_sampler'"),
        ("_x", "'_x' cannot be the name of a Python module; take one like 'x'"),
        ("dgl", "'dgl' is one of gnnbench's own systems; take another name, as 'my_dgl'"),
        ("host", "'host' is one of gnnbench's own features; take another name, as 'my_host'"),
        ("json", "a module 'json' is installed already; take another name, as 'my_json'"),
    ],
)
def test_a_name_that_cannot_be(name, words, tmp_path):
    with pytest.raises(UsageError) as found:
        write("sampler", name, tmp_path / "package")
    assert str(found.value) == words
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_or_cannot_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    with pytest.raises(UsageError, match="'mine' is there already; name another folder: --out"):
        write("system", "mine")
    Path("file").touch()
    with pytest.raises(UsageError, match="'file/mine' cannot be written: Not a directory"):
        write("system", "mine", Path("file/mine"))
