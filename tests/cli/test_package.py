"""The packages that ``gnnbench new`` writes pass their tests and are measured once installed."""

import csv
import os
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

# Few epochs of few batches: the measured times do not matter here.
RUN = (
    "run", "breakdown", "--profile", "smoke", "--repeats", "1", "--models", "gcn", "--datasets",
    "rmat@10", "-q", "-o", "rounds=2", "-o", "max_batches=2", "-o", "fanouts=[4,3]",
)  # fmt: skip
WORK = {"own_sampler": "equivalent", "own_system": "identical"}


@pytest.fixture
def installed(monkeypatch):
    """Makes this process and its children find a folder's package like an installed one."""

    def install(folder):
        add_metadata(folder)
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        monkeypatch.syspath_prepend(str(folder))
        clear_caches()

    yield install
    monkeypatch.undo()
    clear_caches()


def clear_caches():
    caches = registry.installed, registry.entries, available.availability
    for cache in (*caches, environment.dataset_state):
        cache.cache_clear()


def add_metadata(folder):
    """Write the ``dist-info`` that pip would write."""
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


def test_new_packages_pass_their_tests_and_are_measured(tmp_path, installed, said):
    if not native_info()["cpu_built"]:
        pytest.skip("the native library is not built; run 'make install'")
    for name in WORK:
        folder = tmp_path / "packages" / name
        files = write(name.removeprefix("own_"), name, folder)
        assert [f.name for f in files] == ["pyproject.toml", f"{name}.py", f"test_{name}.py"]
        installed(folder)
    tests = [sys.executable, "-m", "pytest", "-q", "packages", "-p", "no:cacheprovider"]
    result = subprocess.run(tests, capture_output=True, text=True)
    assert "4 passed" in result.stdout, result.stdout
    code, out, error = said(*RUN, "--systems", ",".join(("baseline", *WORK)))
    assert code == 0, out + error
    (cells,) = tmp_path.glob("results/*/run-*/cells.csv")
    with cells.open() as file:
        rows = {row["system"]: row for row in csv.DictReader(file)}
    assert {n: row["status"] for n, row in rows.items()} == dict.fromkeys(("baseline", *WORK), "ok")
    assert {name: rows[name]["work_class"] for name in WORK} == WORK
    assert all(rows[name]["verified"] == "true" for name in WORK)


@pytest.mark.parametrize(
    "name,message",
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
def test_invalid_name_is_refused(name, message, tmp_path):
    with pytest.raises(UsageError) as error:
        write("sampler", name, tmp_path / "package")
    assert str(error.value) == message
    assert list(tmp_path.iterdir()) == []


def test_existing_or_unwritable_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    with pytest.raises(UsageError, match="'mine' exists already; name another folder: --out"):
        write("system", "mine")
    Path("file").touch()
    with pytest.raises(UsageError, match="'file/mine' cannot be written: Not a directory"):
        write("system", "mine", Path("file/mine"))
