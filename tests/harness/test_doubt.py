"""Doubts about a trial that its samples show."""

from dataclasses import replace

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness.doubt import pair_doubt, threads_doubt
from gnnbench.schema.samples import EpochSample


def cell(threads, **recipe):
    return Cell("e", "s", "d", "m", threads=threads, recipe=recipe)


def sample(cores, phases=1.0):
    """An epoch of 2 s that uses so many cores, with so many phases open on average."""
    return EpochSample(
        id="a", work_cpu_s=cores * 2.0, parent_s=2.0, wall_s=2.0, idle_s=0.5,
        sample_time_s=phases * 1.0, memory_io_time_s=phases * 0.5,
    )  # fmt: skip


@pytest.mark.parametrize(("threads", "recipe", "cores", "doubted"), [
    (1, {}, 1.0, False),
    (1, {}, 1.06, False),  # a rarely active helper thread
    (1, {}, 1.15, True),
    (2, {"schedule": {"name": "serial"}}, 2.1, False),
    (2, {"schedule": {"name": "serial"}}, 2.2, True),
    (1, {"schedule": {"name": "strange"}}, 1.15, True),
    (1, {"sampler": {"name": "pyg", "workers": 2}}, 3.0, False),
    (1, {"sampler": {"name": "pyg", "workers": 2}}, 4.0, True),
    (1, {"schedule": {"name": "prefetch"}}, 3.0, False),
])  # fmt: skip
def test_use_of_more_cores_than_threads_is_a_doubt(threads, recipe, cores, doubted):
    text = threads_doubt(cell(threads, **recipe), [sample(cores), sample(cores)])
    assert bool(text) == doubted
    assert not doubted or f"kept {cores:.1f} cores busy with" in text


def test_concurrent_phases_of_a_plugin_have_a_team_of_threads_each():
    strange = cell(1, schedule={"name": "strange"})
    assert threads_doubt(strange, [sample(1.9, phases=2.0)]) == ""
    assert "kept 2.5 cores" in threads_doubt(strange, [sample(2.5, phases=2.0)])
    assert threads_doubt(cell(1), [EpochSample(id="a")]) == ""  # of an older journal


def test_waiting_for_a_core_counts_as_use():
    waited = [replace(sample(0.8), worker_wait_s=0.8)]
    assert "kept 1.2 cores busy with 1 thread" in threads_doubt(cell(1), waited)


def test_a_gpu_has_helper_threads():
    on_gpu = replace(cell(1), device="cuda")
    assert threads_doubt(on_gpu, [sample(1.25)]) == ""
    assert "kept 1.4 cores" in threads_doubt(on_gpu, [sample(1.4)])


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
