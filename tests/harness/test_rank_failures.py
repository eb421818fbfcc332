"""Runs in which a rank is killed, stopped, stuck or out of memory: rows, no remains, again."""

import os
from pathlib import Path

import planted_ranks
import psutil
import pytest
from warm import Warm

from gnnbench.config.overrides import Overrides
from gnnbench.core import heartbeat, registry
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.kernels import interprocess
from gnnbench.schema import reader

GRAPH = "products~twin@0.001"
# By fanouts: what goes wrong, in which rank, at which of its draws; the gate's are before.
FAULTS = {
    "2,2": "1 9 killed",
    "3,2": "1 9 stopped",
    "4,2": "1 9 grows",
    # The worker itself, after the gate: nobody is killed that it could wait for.
    "5,2": "0 12 sleeps",
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

ONE = ("fanouts=[[2,2]]",)


@pytest.fixture
def planted(monkeypatch, tmp_path):
    """Runs the definition; rank 1 of each cell errs where ``faults`` is true."""
    folder = Path(planted_ranks.__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder.parent), str(folder)]))
    monkeypatch.setenv(registry.extra_variable("sampler"), planted_ranks.SAMPLER)
    monkeypatch.setenv(planted_ranks.SILENCE, "4")
    registry.entries.cache_clear()
    (tmp_path / "mine.toml").write_text(DEFINITION)

    def run(observer, faults=False, **how):
        told = ";".join(f"{of} {what}" for of, what in FAULTS.items()) if faults else ""
        monkeypatch.setenv(planted_ranks.FAULT, told)
        over = Overrides(options=how.pop("options", ()))
        asked = make_request(str(tmp_path / "mine.toml"), over, tmp_path / "out", **how)
        return campaign.run(asked, observer)

    yield run
    monkeypatch.undo()
    registry.entries.cache_clear()


def left():
    """Processes below this one, ports that they or it wait at, memory with a name or of ranks."""
    me = psutil.Process()
    ports = {c.laddr for c in me.net_connections("inet") if c.status == "LISTEN"}
    maps = Path("/proc/self/maps").read_text()
    memory = {name for name in (heartbeat.NAME, interprocess.NAME) if name in maps}
    source = Warm.source and Warm.source.pid  # the suite's own, which goes with it
    processes = {p for p in me.children(recursive=True) if p.pid != source}
    return processes | ports | memory | set(Path("/dev/shm").iterdir())


@pytest.mark.timeout(300)
def test_what_happens_to_a_rank_is_a_row_and_runs_again(planted, observer):
    before = left()
    first = planted(observer, faults=True)
    assert left() <= before
    assert first.exit_code == 3
    rows = {r["fanouts"].replace("/", ","): r for r in reader.read(first.folder).cells}
    assert {of: r["status"] for of, r in rows.items()} == {
        "2,2": "crash", "3,2": "crash", "4,2": "oom_host", "5,2": "crash",
    }  # fmt: skip
    assert "the process of rank 1 died by SIGKILL" in rows["2,2"]["reason"]
    assert "it hangs; run again" in rows["3,2"]["reason"]
    assert "host's memory is exhausted" in rows["4,2"]["reason"]
    assert "rank 0 did nothing for 4 s: it hangs" in rows["5,2"]["reason"]
    again = planted(observer, only_failed=True)
    assert (again.folder, again.exit_code) == (first.folder, 0)
    assert {r["status"] for r in reader.read(again.folder).cells} == {"ok"}
    assert left() <= before


@pytest.mark.timeout(300)
def test_an_interrupted_run_of_ranks_leaves_nothing_and_goes_on(planted, observer):
    before, step = left(), observer.step

    def interrupts(text, fraction):
        step(text, fraction)
        if any(process.children() for process in psutil.Process().children()):
            raise KeyboardInterrupt  # ranks are there

    observer.step = interrupts
    with pytest.raises(campaign.Interrupted):
        planted(observer, options=ONE)
    assert left() <= before
    observer.step = step
    done = planted(observer, options=ONE, resume=True)
    (row,) = reader.read(done.folder).cells
    assert (done.exit_code, row["status"]) == (0, "ok")
    assert left() <= before
