"""Samplers and trainers in processes of their own, and what must not remain of them."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compose import make

from gnnbench.distributed import scheduler
from gnnbench.kernels.interprocess import NAME as MEMORY

SMALL = {"batch_size": 30, "fanouts": (3, 2)}  # seven batches of 200 seeds, the last one of 20


@contextmanager
def factored_systems(graph) -> Iterator:
    """Makes systems by their numbers of samplers and trainers; one at a time, ended at last."""
    gc.collect()  # batches in errors that tests before have caught
    made = []

    def end():
        for system in made:
            ranks = system.schedule.session.processes.processes
            system.close()
            assert all(process.poll() is not None for process in ranks)
            assert not shared_memory()
        assert [t for t in threading.enumerate() if t.name == scheduler.NAME] == []
        made.clear()

    def build(samplers=1, trainers=1, settings=None, **changes):
        end()
        asked = {
            "schedule": "factored", "schedule.samplers": samplers,
            "schedule.trainers": trainers, **(settings or {}),
        }  # fmt: skip
        made.append(make(graph, settings=asked, **{**SMALL, **changes}))
        return made[-1]

    yield build
    end()


def shared_memory():
    """What this process holds of memory that a queue shares."""
    maps = [m for m in Path("/proc/self/maps").read_text().splitlines() if MEMORY in m]
    links = [str(f.readlink()) for f in Path("/proc/self/fd").iterdir() if f.is_symlink()]
    return maps + [link for link in links if MEMORY in link]
