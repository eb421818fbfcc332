"""A worker's start: what it imports, what it tells of it, and that it trusts an untouched graph."""

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
    """The rest costs each life of a worker seconds: compilers, data frames, other frameworks."""
    cell = cell_of("baseline", tmp_path)
    keeper = SharedMemoryCache(tmp_path, 60.0)
    assert keeper.prepare(cell) is None
    code = (
        "import json, sys;"
        " from gnnbench.harness.worker_commands import SystemCommands;"
        " w = SystemCommands(lambda: None);"
        " c = json.load(sys.stdin);"
        " w.open(**c); w.setup(); print(*sys.modules)"
    )
    command = {"cell": asdict(replace(cell, threads=1)), "graph": keeper.graph(cell)}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(command), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    found = set(done.stdout.split())
    assert {"torch", "gnnbench.systems.runtime.runner"} <= found
    unused = {"torch._dynamo", "sympy", "pydantic", "pandas", "scipy", "matplotlib", "dgl"}
    unused |= {"torch_geometric", "gnnbench.datasets.prepare", "gnnbench.config.experiment"}
    assert not unused & found


def test_a_framework_s_import_is_timed_once_however_it_nests(tmp_path, monkeypatch):
    """Two frameworks that take 5 and 7 s by the clock; the first imports the second on its way."""
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


def test_a_stamped_graph_is_checked_again_once_it_is_touched(tmp_path):
    folder = prepare(DATASET, root=tmp_path)
    verified = stamp(folder)
    assert verified == stamp(folder)
    graph = open_graph(folder, verified)
    assert graph.path == folder
    indices = folder / "indices.bin"
    content = bytearray(indices.read_bytes())
    content[:4] = (graph.num_nodes).to_bytes(4, "little")  # an edge from a node that is not there
    indices.write_bytes(content)
    assert stamp(folder) != verified
    with pytest.raises(DataError, match="outside"):
        open_graph(folder, verified)
    indices.unlink()
    with pytest.raises(DataError, match=r"indices\.bin"):
        stamp(folder)


@pytest.mark.usefixtures("cold")
def test_a_worker_reports_its_start_and_waits_passively_whatever_the_user_set(
    tmp_path, monkeypatch
):
    """The environment reaches the process, and each OpenMP runtime that is loaded takes it."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setenv("KMP_BLOCKTIME", "0")  # as the harness has it: nothing is overridden
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
    assert values["import_time_s"] == 0  # the fakes bring no framework
    assert values["setup_time_s"] >= 0
    (started,) = [r["value"] for r in rows if r["name"] == "start_time_s"]
    assert started == pytest.approx(values["open_time_s"] + values["setup_time_s"])
