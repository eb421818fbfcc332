import os
import signal

import pytest
from compose import make, run
from rank_groups import SMALL
from rank_pool import ranks_from
from two_processes import alive

from gnnbench.distributed.rank_failure import RankDiedError


def groups(graph):
    """Builds systems of several ranks, one at a time; closes them at the end."""
    made = []

    def end():
        for system in made:
            system.close()
            assert all(p.poll() is not None for p in system.schedule.session.processes.processes)
        made.clear()

    def build(ranks, settings=None, of=graph, **changes):
        end()
        all_settings = {"schedule": "data-parallel", "schedule.ranks": ranks, **(settings or {})}
        made.append(make(of, settings=all_settings, **{**SMALL, **changes}))
        return made[-1]

    yield build
    end()


def assert_a_killed_rank_ends_the_epoch(system):
    assert run(system).ok
    first, *others = system.schedule.pids
    os.kill(first, signal.SIGKILL)
    with pytest.raises(RankDiedError, match="rank 1 died by SIGKILL"):
        run(system, 1)
    assert not any(map(alive, others))


@pytest.fixture
def group(small_graph, rank_pool):
    """Builds systems of several ranks, one at a time, in processes of the pool."""
    with ranks_from(rank_pool):
        yield from groups(small_graph)


@pytest.fixture
def own_group(small_graph):
    """The same in new processes, which must end with the system."""
    made = []
    for build in groups(small_graph):

        def noted(*args, build=build, **changes):
            made.append(build(*args, **changes))
            return made[-1]

        yield noted
    assert not any(alive(pid) for system in made for pid in system.schedule.pids)
