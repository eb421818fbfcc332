"""The feature table is mapped by all ranks and copied by none, by the kernel's counters."""

import os
from pathlib import Path

import pytest
from compose import counted, run

import gnnbench

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPH = "rows@64kx512"  # 134 MB
RANKS, EPOCHS = 4, 8  # reads of a quarter of the rows cover most of the table by then
OWN = 32e6  # bound for a rank's batches and buffers; a copy would have four times as much


def of_table(pid, what):
    """Resident bytes of the table in a process: ``Rss``, or ``Pss`` (divided by the number of
    processes that map it)."""
    total, within = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if "-" in line.split()[0]:  # where a mapping is, and of what
            within = "features" in line
        elif within and line.startswith(f"{what}:"):
            total += int(line.split()[1]) * 1024
    return total


def own(pid):
    """Private anonymous bytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def test_table_is_in_memory_once_for_any_number_of_ranks(group):
    graph = gnnbench.load_dataset(GRAPH)
    table = graph.features.nbytes
    assert table > 4 * OWN
    gathers = {"until": "memory_io", "fanouts": ()}
    assert run(group(RANKS, **gathers)).ok  # of a small table, by processes that serve again
    pids = group(RANKS, **gathers).schedule.pids
    before = {pid: own(pid) for pid in pids}
    system = group(RANKS, of=graph, batch_size=8192, **gathers)
    assert sorted(system.schedule.pids) == sorted(pids)
    for epoch in range(EPOCHS):
        report = run(system, epoch)
        assert report.ok, report.reason
    assert counted(report)["features", "feature_bytes", "host"] == table
    for pid in pids:
        # The rank has read most of the table.
        assert of_table(pid, "Rss") > 0.8 * table, Path(f"/proc/{pid}/maps").read_text()
        assert own(pid) - before[pid] < OWN
    whole = sum(of_table(pid, "Pss") for pid in [os.getpid(), *pids])
    assert 0.9 * table < whole < 1.05 * table
