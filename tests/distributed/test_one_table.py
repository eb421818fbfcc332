"""The table of features is mapped by all ranks and copied by none: what the kernel counts of it."""

import os
from pathlib import Path

import pytest
from compose import counted, run

import gnnbench

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPH = "rows@64kx512"  # 134 MB
RANKS, EPOCHS = 4, 8  # a rank that reads a quarter of the rows in each has read most of them then
OWN = 32e6  # that a rank's batches and buffers may take; a copy would be four times that


def of_table(pid, what):
    """Bytes of the table's pages that a process has in memory: ``Rss``, or ``Pss``, each over those
    that map it."""
    total, within = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if "-" in line.split()[0]:  # where a mapping is, and of what
            within = "features" in line
        elif within and line.startswith(f"{what}:"):
            total += int(line.split()[1]) * 1024
    return total


def own(pid):
    """Bytes that a process has in memory of no file, and shares with nobody."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def test_a_table_is_in_memory_once_however_many_ranks_read_it(group):
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
        # It has read most of it.
        assert of_table(pid, "Rss") > 0.8 * table, Path(f"/proc/{pid}/maps").read_text()
        assert own(pid) - before[pid] < OWN
    whole = sum(of_table(pid, "Pss") for pid in [os.getpid(), *pids])
    assert 0.9 * table < whole < 1.05 * table
