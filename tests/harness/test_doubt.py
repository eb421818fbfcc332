"""Doubts about a trial that its samples show."""

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness.doubt import threads_doubt
from gnnbench.schema.samples import EpochSample


def cell(threads, **recipe):
    return Cell("e", "s", "d", "m", threads=threads, recipe=recipe)


def sample(cores, block_s=2.0):
    return EpochSample(id="a", cpu_s=cores * block_s, block_s=block_s)


@pytest.mark.parametrize(("threads", "recipe", "cores", "doubted"), [
    (1, {}, 1.0, False),
    (1, {}, 1.3, False),  # clock ticks, and a rarely active helper thread
    (1, {}, 1.9, True),
    (2, {"schedule": {"name": "serial"}}, 2.4, False),
    (2, {"schedule": {"name": "serial"}}, 3.0, True),
    (1, {"sampler": {"name": "pyg", "workers": 2}}, 3.0, False),
    (1, {"sampler": {"name": "pyg", "workers": 2}}, 4.0, True),
    (1, {"schedule": {"name": "prefetch"}}, 3.0, False),
])  # fmt: skip
def test_use_of_more_cores_than_threads_is_a_doubt(threads, recipe, cores, doubted):
    text = threads_doubt(cell(threads, **recipe), [sample(cores), sample(cores)])
    assert bool(text) == doubted
    assert not doubted or f"used {cores:.1f} cores with" in text
