import pytest
from compose import make
from rank_groups import SMALL
from rank_pool import ranks_from
from two_processes import alive


def groups(graph):
    """Makes systems of some ranks; one at a time, ended at last."""
    made = []

    def end():
        for system in made:
            system.close()
            assert all(p.poll() is not None for p in system.schedule.session.processes.processes)
        made.clear()

    def build(ranks, settings=None, of=graph, **changes):
        end()
        asked = {"schedule": "data-parallel", "schedule.ranks": ranks, **(settings or {})}
        made.append(make(of, settings=asked, **{**SMALL, **changes}))
        return made[-1]

    yield build
    end()


@pytest.fixture
def group(small_graph, rank_pool):
    """Makes a system of some ranks; one at a time, ended with the test."""
    with ranks_from(rank_pool):
        yield from groups(small_graph)


@pytest.fixture
def own_group(small_graph):
    """The same of processes of their own, which end with the system."""
    made = []
    for build in groups(small_graph):

        def noted(*args, build=build, **changes):
            made.append(build(*args, **changes))
            return made[-1]

        yield noted
    assert not any(alive(pid) for system in made for pid in system.schedule.pids)
