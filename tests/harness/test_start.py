"""A worker's start: imports, reported times, environment, and stamps of verified graphs."""

import importlib
import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gnnbench.config.overrides import Overrides
from gnnbench.core.errors import DataError
from gnnbench.datasets.prepare import prepare
from gnnbench.datasets.store.reader import open_graph
from gnnbench.datasets.store.seal import stamp
from gnnbench.harness import startup
from gnnbench.harness.launch import make_request
from gnnbench.harness.process import WorkerProcess
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.worker_environment import WORKER_ENVIRONMENT, overridden_environment
from gnnbench.schema import MetricRow
from gnnbench.schema.reader import read_csv

DATASET = "products~twin@0.001"


def cell_of(system, tmp_path):
    over = Overrides(profile="smoke", systems=(system,), datasets=(DATASET,))
    return make_request("breakdown", over, tmp_path).plan.cells[0]


def test_a_baseline_worker_imports_only_what_it_uses(tmp_path):
    """Compilers, data frames and other frameworks would cost each worker seconds."""
    cell = cell_of("baseline", tmp_path)
    cache = SharedMemoryCache(tmp_path, 60.0)
    assert cache.prepare(cell) is None
    code = (
        "import json, sys;"
        " from gnnbench.harness.worker_commands import SystemCommands;"
        " w = SystemCommands(lambda: None);"
        " c = json.load(sys.stdin);"
        " w.open(**c); w.setup(); print(*sys.modules)"
    )
    command = {"cell": asdict(replace(cell, threads=1)), "graph": cache.graph(cell)}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(command), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    modules = set(done.stdout.split())
    assert {"torch", "gnnbench.systems.runtime.runner"} <= modules
    unused = {"torch._dynamo", "sympy", "pydantic", "pandas", "scipy", "matplotlib", "dgl"}
    unused |= {"torch_geometric", "gnnbench.datasets.prepare", "gnnbench.config.experiment"}
    assert not unused & modules


def test_nested_framework_imports_are_timed_once(tmp_path, monkeypatch):
    """Two frameworks take 5 and 7 s to import; the first imports the second."""
    (tmp_path / "ticks.py").write_text("now = 0")
    (tmp_path / "other.py").write_text("import ticks; ticks.now += 100")
    (tmp_path / "first.py").write_text("import ticks, second; ticks.now += 5; NAME = __name__")
    (tmp_path / "second.py").write_text("import ticks; ticks.now += 7")
    monkeypatch.syspath_prepend(tmp_path)
    import ticks

    monkeypatch.setattr(startup, "FRAMEWORKS", ("first", "second"))
    monkeypatch.setattr(startup, "time", SimpleNamespace(perf_counter=lambda: ticks.now))
    clock = startup.FrameworkClock()
    try:
        for name, expected in (("other", 0), ("first", 12), ("second", 12), ("first", 12)):
            importlib.import_module(name)
            assert clock.seconds == expected
    finally:
        sys.meta_path.remove(clock)
        for name in ("ticks", "other", "first", "second"):
            del sys.modules[name]


def test_changed_graph_is_verified_again(tmp_path):
    folder = prepare(DATASET, root=tmp_path)
    verified = stamp(folder)
    assert verified == stamp(folder)
    graph = open_graph(folder, verified)
    assert graph.path == folder
    indices = folder / "indices.bin"
    content = bytearray(indices.read_bytes())
    content[:4] = (graph.num_nodes).to_bytes(4, "little")  # an edge from a missing node
    indices.write_bytes(content)
    assert stamp(folder) != verified
    with pytest.raises(DataError, match="outside"):
        open_graph(folder, verified)
    indices.unlink()
    with pytest.raises(DataError, match=r"indices\.bin"):
        stamp(folder)


@pytest.mark.usefixtures("cold")
def test_worker_reports_its_start_and_overrides_the_users_wait_policy(tmp_path, monkeypatch):
    """The environment reaches the process and each OpenMP runtime that it loads."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setenv("KMP_BLOCKTIME", "0")  # the harness's own value, so not an override
    monkeypatch.setenv("OMP_DISPLAY_ENV", "VERBOSE")
    assert overridden_environment() == {"OMP_WAIT_POLICY": "ACTIVE"}
    log = tmp_path / "log"
    with WorkerProcess(cell_of("baseline", tmp_path), log, 60.0) as worker:
        opened = worker.open()
        ready = worker.call("setup")
        raw = Path(f"/proc/{worker.pid}/environ").read_bytes().split(b"\0")
        maps = Path(f"/proc/{worker.pid}/maps").read_text()
    assert opened["facts"]["nodes"] > 0
    assert opened["open_s"] > 0
    assert opened["import_s"] == ready["import_s"] == 0
    assert ready["seconds"] > 0
    environment = dict(line.decode().split("=", 1) for line in raw if line)
    assert environment.items() >= WORKER_ENVIRONMENT.items()
    runtimes = set(re.findall(r"\S*/lib(?:g|i)?omp[\d.-]*\.so\S*", maps))
    shown = log.read_text()
    assert len(runtimes) >= 1
    assert shown.count("OPENMP DISPLAY ENVIRONMENT BEGIN") == len(runtimes)
    assert shown.count("OMP_WAIT_POLICY = 'PASSIVE'") == len(runtimes)
    if any("libgomp" in one for one in runtimes):
        assert "GOMP_SPINCOUNT = '0'" in shown


@pytest.mark.usefixtures("cold")
def test_a_run_records_its_start_and_the_environment_of_its_workers(launch, monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "1000")
    folder = launch("fake", repeats=1).folder
    record = json.loads((folder / "run.json").read_text())
    assert record["worker_environment"] == WORKER_ENVIRONMENT
    assert record["overridden_environment"] == {"GOMP_SPINCOUNT": "1000"}
    rows = read_csv(folder / "metrics.csv", MetricRow)
    values = {r["name"]: r["value"] for r in rows if r["stage"] in ("open", "setup")}
    assert values["open_time_s"] > 0
    assert values["import_time_s"] == 0  # the fakes import no framework
    assert values["setup_time_s"] >= 0
    (started,) = [r["value"] for r in rows if r["name"] == "start_time_s"]
    assert started == pytest.approx(values["open_time_s"] + values["setup_time_s"])
