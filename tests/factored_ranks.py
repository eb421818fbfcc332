"""Systems of sampler and trainer ranks; checks that no process or memory remains."""

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
    """Builds systems of some samplers and trainers, one at a time; closes them at the end."""
    gc.collect()  # batches in exceptions of earlier tests
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
        all_settings = {
            "schedule": "factored", "schedule.samplers": samplers,
            "schedule.trainers": trainers, **(settings or {}),
        }  # fmt: skip
        made.append(make(graph, settings=all_settings, **{**SMALL, **changes}))
        return made[-1]

    yield build
    end()


def shared_memory():
    """Return this process' mappings and descriptors of a queue's shared memory."""
    maps = [m for m in Path("/proc/self/maps").read_text().splitlines() if MEMORY in m]
    links = [str(f.readlink()) for f in Path("/proc/self/fd").iterdir() if f.is_symlink()]
    return maps + [link for link in links if MEMORY in link]
