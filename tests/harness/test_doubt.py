"""Doubts about a trial that its samples show."""

from dataclasses import replace

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness.doubt import pair_doubt, threads_doubt
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


def test_doubts_of_a_pair():
    quiet = EpochSample(id="x", system="a", block_s=1.0, idle_cpu_s=0.0, foreign_cpu_s=0.0)
    partner = replace(quiet, id="y", system="b")
    assert pair_doubt([quiet, partner]) == ""
    assert "other programs used 0.9 cores" in pair_doubt(
        [replace(quiet, foreign_cpu_s=0.9), partner]
    )
    spins = pair_doubt([replace(quiet, idle_cpu_s=0.5), partner])
    assert spins == "the worker of 'b' used 50% of a core while 'a' was measured"
    assert "throttled (hot)" in pair_doubt([quiet, replace(partner, throttle="hot")])
    # Less than three clock ticks are ignored.
    brief = replace(quiet, block_s=0.02, idle_cpu_s=0.02, foreign_cpu_s=0.02)
    assert pair_doubt([brief, partner]) == ""
    # 16 threads in bursts: CPU use of the machine is accurate to 10 % of the worker's own.
    many = replace(quiet, cpu_s=8.0, foreign_cpu_s=0.5)
    assert pair_doubt([many, partner]) == ""
    assert "other programs used 1.5 cores" in pair_doubt(
        [replace(many, foreign_cpu_s=1.5), partner]
    )
    # With eight free cores, a light load is no doubt.
    little = replace(quiet, foreign_cpu_s=0.5)
    assert pair_doubt([little, partner], free_cores=8) == ""
    assert "0.5 cores" in pair_doubt([little, partner], free_cores=2)
    # Rounding errors cancel.
    assert pair_doubt([replace(quiet, foreign_cpu_s=f) for f in (0.5, -0.4, 0.1)]) == ""
