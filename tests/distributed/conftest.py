"""Systems of several processes."""

import pytest
from factored_ranks import factored_systems
from rank_fixtures import group, own_group  # noqa: F401
from rank_pool import ranks_from
from two_processes import planted, two  # noqa: F401


@pytest.fixture
def factored(small_graph, rank_pool):
    """Builds systems of samplers and trainers, in processes of the pool."""
    with ranks_from(rank_pool), factored_systems(small_graph) as build:
        yield build
