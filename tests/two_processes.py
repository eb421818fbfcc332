"""Shared code of the tests of a producer's process, on a CPU and on a GPU."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from compose import counted, make

from gnnbench.core import registry

TWO = {"schedule": "producer-consumer"}
# Counts of that schedule.
OWN = {"handed_bytes", "buffer_bytes", "buffers_grown", "copied_bytes", "synchronisations"}


@pytest.fixture
def planted(monkeypatch):
    """Settings of a store that fails in the producer, once in each epoch."""
    monkeypatch.setenv(registry.extra_variable("features"), "planted=planted_stages:Planted")
    registry.entries.cache_clear()
    yield lambda *faults: {**TWO, "features": "planted", "features.faults": " ".join(faults)}
    monkeypatch.undo()
    registry.entries.cache_clear()


@pytest.fixture
def two(small_graph):
    """Builds systems of two processes; checks that both end."""
    made = []

    def build(settings=None, **changes):
        made.append(make(small_graph, settings={**TWO, **(settings or {})}, **changes))
        return made[-1]

    yield build
    for system in made:
        system.close()
        assert not alive(system.schedule.pid)


def alive(pid):
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def signal_if_there(pid, sign):
    """Signal a process that may have exited: a step hook runs on until the loss is noticed."""
    with suppress(ProcessLookupError):
        os.kill(pid, sign)


def without_own(report):
    """Return the counts of all stages but the schedule."""
    return {key: value for key, value in counted(report).items() if key[1] not in OWN}
