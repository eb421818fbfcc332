import pytest
from compose import make
from rank_groups import SMALL
from two_processes import alive


@pytest.fixture
def group(small_graph):
    """Makes a system of some ranks; one at a time, ended with the test."""
    made = []

    def end():
        for system in made:
            system.close()
            assert not any(map(alive, system._schedule.pids))
        made.clear()

    def build(ranks, settings=None, **changes):
        end()
        asked = {"schedule": "data-parallel", "schedule.ranks": ranks, **(settings or {})}
        made.append(make(small_graph, settings=asked, **{**SMALL, **changes}))
        return made[-1]

    yield build
    end()
