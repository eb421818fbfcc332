"""Sweeps of one axis around a centre, and shipped definitions with sweeps."""

import pytest
from definitions import SMALL, load, resolve, write

from gnnbench.config import experiment as ex
from gnnbench.config.grid import expand

SWEPT = (
    SMALL
    + "batch_size = [8]\nfanouts = [[15, 10]]\n"
    + "[sweeps.batch]\nbatch_size = [4, 8, 16]\n"
    + "[sweeps.size]\ndataset = ['e', 'f']\nbatch_size = [2, 1]\n"
)


def test_sweeps_vary_one_axis_around_the_centre(tmp_path):
    experiment = load(tmp_path, SWEPT)
    grid = expand(experiment, resolve)
    assert [(c.system, c.dataset, c.batch_size) for c in grid.cells] == [
        ("a", "d", 8), ("b", "d", 8),
        ("a", "d", 4), ("b", "d", 4), ("a", "d", 16), ("b", "d", 16),
        ("a", "e", 2), ("b", "e", 2), ("a", "f", 1), ("b", "f", 1),
    ]  # fmt: skip
    assert len(grid.asked) == 2 + 6 + 4  # the centre is also a point of the first sweep
    ids = [c.id for c in grid.cells]
    assert grid.sweeps == {
        "batch": [
            {"values": {"batch_size": 4}, "cells": ids[2:4]},
            {"values": {"batch_size": 8}, "cells": ids[:2]},
            {"values": {"batch_size": 16}, "cells": ids[4:6]},
        ],
        "size": [
            {"values": {"dataset": "e", "batch_size": 2}, "cells": ids[6:8]},
            {"values": {"dataset": "f", "batch_size": 1}, "cells": ids[8:]},
        ],
    }
    assert experiment.axis("batch_size") == [8, 4, 16, 2, 1]
    reloaded = ex.resolve(ex.load(write(tmp_path, experiment.to_toml(), "again.toml")))
    assert (reloaded, reloaded.hash) == (experiment, experiment.hash)


def test_profile_has_sweeps_and_an_option_moves_the_centre(tmp_path):
    text = SMALL + "batch_size = [8]\n[profiles.p]\nsweeps.depth.fanouts = [[5], [5, 5]]\n"
    text += "sweeps.sampler.'a.sampler.ratio' = [0.1, 0.2]\n"
    experiment = load(tmp_path, text, "p", {"axes": {"batch_size": [64]}})
    cells = expand(experiment, resolve).cells
    assert {c.batch_size for c in cells} == {64}
    assert [c.fanouts for c in cells if c.system == "b"] == [(15, 10, 5), (5,), (5, 5)]
    ratios = [c.recipe.get("sampler.ratio") for c in cells if c.system == "a"]
    assert ratios == [None, None, None, 0.1, 0.2]
    assert experiment.paths() == ["a.sampler.ratio"]
    assert load(tmp_path, text).sweeps == {}


def test_sweep_replaces_one_of_the_same_name(tmp_path):
    """Axes of a sweep vary together, so a merge would have lists of different lengths."""
    text = SMALL + "batch_size = [8]\nfanouts = [[15, 10]]\n"
    text += "[sweeps.size]\nbatch_size = [2, 4]\n"
    text += "[profiles.p.sweeps.size]\nfanouts = [[5], [4], [3]]\n"
    assert load(tmp_path, text, "p").sweeps == {"size": {"fanouts": [[5], [4], [3]]}}
    write(tmp_path, text, "base.toml")
    extending = "schema_version = 2\nextends = 'base'\n[sweeps.size]\nthreads = [1, 2, 3, 4]\n"
    experiment = ex.load(write(tmp_path, extending, "extending.toml"))
    assert ex.resolve(experiment).sweeps == {"size": {"threads": [1, 2, 3, 4]}}
    assert ex.resolve(experiment, "p").sweeps == {"size": {"fanouts": [[5], [4], [3]]}}


def test_several_gpus_are_unsupported(tmp_path):
    grid = expand(load(tmp_path, SMALL + "gpus = [1, 2]\n"), resolve)
    one, two = ([c for c in grid.cells if c.gpus == n] for n in (1, 2))
    assert [grid.unsupported.get(c.id, "") for c in one] == ["", ""]
    for cell in two:
        assert grid.unsupported[cell.id].endswith(f"-o {cell.system}.schedule.ranks=2")
    plain = expand(load(tmp_path, SMALL), resolve).cells
    assert [c.id for c in one] == [c.id for c in plain]


SWEEPS = ["batch_size", "feature_width", "fanouts", "layers", "graph_size", "threads"]


@pytest.mark.parametrize(
    ("profile", "systems", "points"), [("smoke", 2, 7), ("laptop", 3, 15), ("gpu", 4, 17)]
)
def test_scalability_definition_sweeps_around_the_centre(profile, systems, points):
    """Every sweep contains the centre, and varies only its own axes."""
    resolved = ex.resolve(ex.load("scalability"), profile)
    grid = expand(resolved, resolve)
    assert len(grid.cells) == systems * points and list(grid.sweeps) == SWEEPS
    centre = grid.asked[:systems]
    for name, sweep in grid.sweeps.items():
        assert centre in [point["cells"] for point in sweep], name
        assert len({tuple(point["values"]) for point in sweep}) == 1
    if profile in ("laptop", "gpu"):
        assert resolved.sweeps["batch_size"] == {"batch_size": [8, 64, 512, 4000, 16000]}


@pytest.mark.parametrize(
    ("profile", "swept"), [("ranks", ["fastsample"]), ("ranks-gpus", ["best", "fastgl"])]
)
def test_strong_scaling_sweeps_ranks_only(profile, swept):
    grid = expand(ex.resolve(ex.load("scalability"), profile), resolve)
    values = [point["values"] for point in grid.sweeps["ranks"]]
    assert values == [{f"{system}.schedule.ranks": n for system in swept} for n in (1, 2, 4)]
    assert not grid.unsupported


@pytest.mark.parametrize(
    ("profile", "swept", "seeds"),
    [("ranks", ["fastsample"], 512), ("weak-gpus", ["best", "fastgl"], 8000)],
)
def test_weak_scaling_has_one_process_of_each_batch_size(profile, swept, seeds):
    grid = expand(ex.resolve(ex.load("scalability"), profile), resolve)
    values = [point["values"] for point in grid.sweeps["weak_scaling"]]
    assert values == [
        {**{f"{system}.schedule.ranks": n for system in swept}, "batch_size": n * seeds}
        for n in (1, 2, 4)
    ]
    ranks = {(c.system, c.batch_size, c.recipe.get("schedule.ranks")) for c in grid.cells}
    for n in (1, 2, 4):
        for system in swept:
            assert (system, n * seeds, n) in ranks
            alone = (
                (system, n * seeds, 1) if profile == "weak-gpus" else ("baseline", n * seeds, None)
            )
            assert alone in ranks
    assert not grid.unsupported


@pytest.mark.parametrize(("profile", "cells"), [("smoke", 4), ("laptop", 16), ("gpu", 38)])
def test_memory_definition_has_its_cells(profile, cells):
    resolved = ex.resolve(ex.load("memory"), profile)
    assert resolved.measure.memory
    assert len(expand(resolved, resolve).cells) == cells
