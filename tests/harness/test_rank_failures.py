"""Runs in which a rank is killed, stopped, stuck or out of memory."""

import os
from pathlib import Path

import planted_ranks
import psutil
import pytest
from warm import SILENCE, Warm

from gnnbench.config.overrides import Overrides
from gnnbench.core import heartbeat, registry
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.kernels import interprocess
from gnnbench.schema import reader

GRAPH = "products~twin@0.001"
# By fanouts: rank, number of its draw, fault. Draws of the gate come first.
FAULTS = {
    "2,2": "1 9 killed",
    "3,2": "1 9 stopped",
    "4,2": "1 9 grows",
    # Rank 0 is the worker itself; the fault is after the gate.
    "5,2": "0 22 sleeps",
}
DEFINITION = """
schema_version = 2
extends = "breakdown"
default_profile = ""
[axes]
system = ["baseline"]
dataset = ["products~twin@0.001"]
batch_size = [64]
fanouts = [[2, 2], [3, 2], [4, 2], [5, 2]]
hidden = [8]
"baseline.sampler" = ["faulty"]
"baseline.schedule" = ["data-parallel"]
[measure]
pairs = [1]
rounds = 2
max_batches = 3
unstable_half_width = 0.0
memory_limit_gib = 32.0
"""


@pytest.fixture
def planted(monkeypatch, tmp_path):
    """Runs the definition; with ``faults``, a rank of each cell fails as in FAULTS."""
    folder = Path(planted_ranks.__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder.parent), str(folder)]))
    monkeypatch.setenv(registry.extra_variable("sampler"), planted_ranks.SAMPLER)
    monkeypatch.setenv(SILENCE, "4")
    registry.entries.cache_clear()
    (tmp_path / "mine.toml").write_text(DEFINITION)

    def run(observer, faults=False, **request_options):
        fault_spec = ";".join(f"{of} {what}" for of, what in FAULTS.items()) if faults else ""
        monkeypatch.setenv(planted_ranks.FAULT, fault_spec)
        over = Overrides(options=request_options.pop("options", ()))
        request = make_request(
            str(tmp_path / "mine.toml"), over, tmp_path / "out", **request_options
        )
        return campaign.run(request, observer)

    yield run
    monkeypatch.undo()
    registry.entries.cache_clear()


def resources():
    """Child processes, listening ports and shared memory of this process."""
    me = psutil.Process()
    ports = {c.laddr for c in me.net_connections("inet") if c.status == "LISTEN"}
    maps = Path("/proc/self/maps").read_text()
    memory = {name for name in (heartbeat.NAME, interprocess.NAME) if name in maps}
    source = Warm.source and Warm.source.pid  # belongs to the test suite
    processes = {p for p in me.children(recursive=True) if p.pid != source}
    return processes | ports | memory | set(Path("/dev/shm").iterdir())


def statuses(folder):
    rows = reader.read(folder).cells
    return {r["fanouts"].replace("/", ","): (r["status"], r["reason"]) for r in rows}


@pytest.mark.timeout(300)
def test_hanging_ranks_are_rows_and_leave_no_resources(planted, observer):
    before = resources()
    run = planted(observer, faults=True, options=("fanouts=[[3,2],[5,2]]",))
    assert resources() <= before
    assert run.exit_code == 3
    rows = statuses(run.folder)
    assert {of: status for of, (status, _) in rows.items()} == {"3,2": "crash", "5,2": "crash"}
    assert "it hangs; run again" in rows["3,2"][1]
    assert "rank 0 did nothing for 4 s: it hangs" in rows["5,2"][1]


@pytest.mark.timeout(300)
def test_dead_ranks_are_rows_and_can_be_repeated_and_resumed(planted, observer):
    before, step = resources(), observer.step
    options = ("fanouts=[[2,2],[4,2]]",)
    first = planted(observer, faults=True, options=options)
    assert resources() <= before
    assert first.exit_code == 3
    rows = statuses(first.folder)
    assert {of: status for of, (status, _) in rows.items()} == {"2,2": "crash", "4,2": "oom_host"}
    assert "the process of rank 1 died by SIGKILL" in rows["2,2"][1]
    assert "host's memory is exhausted" in rows["4,2"][1]

    def interrupt(text, fraction):
        step(text, fraction)
        if any(process.children() for process in psutil.Process().children()):
            raise KeyboardInterrupt  # the worker has started its rank

    observer.step = interrupt
    with pytest.raises(campaign.Interrupted):
        planted(observer, options=options, only_failed=True)
    assert resources() <= before
    observer.step = step
    again = planted(observer, options=options, resume=True)
    assert (again.folder, again.exit_code) == (first.folder, 0)
    assert {status for status, _ in statuses(again.folder).values()} == {"ok"}
    assert resources() <= before
