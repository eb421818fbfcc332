"""The table of overlapped epochs, of rows written out."""

import json

import pytest

from gnnbench.analysis import metrics as m
from gnnbench.analysis.metric_tables import OVERLAP

ROW = {
    "dataset": "d", "until": "compute", "model": "gcn", "device": "cuda", "system": "baseline",
    "status": "ok", "verified": True, "hidden": 8,
}  # fmt: skip


def cell(name, schedule, overlap=1.0, **values):
    recipe = json.dumps({"schedule": {"name": schedule}})
    return {
        **ROW,
        "id": name,
        "recipe": recipe,
        "overlap_s": overlap,
        "epoch_wall_s": 2.2,
        **values,
    }


def metrics_of(name, slowed=(1.0, 1.25, 1.5)):
    phases = ("sample", "memory_io", "compute")
    return [
        m.metric(name, m.EPOCH, m.BOUND, 2.0),
        m.metric(name, m.EPOCH, m.OF_BOUND, 1.1),
        *(m.metric(name, p, m.INTERFERENCE, x) for p, x in zip(phases, slowed, strict=False)),
    ]


def test_overlapped_cell_is_compared_with_its_bound():
    rows = [cell("a", "serial", 0.0), cell("b", "prefetch"), cell("c", "prefetch", hidden=16)]
    part = OVERLAP.table(rows, [*metrics_of("a"), *metrics_of("b")])
    assert tuple(part.heads) == (
        "hidden", "system", "epoch", "bound", "of bound", "sample", "memory IO", "compute",
    )  # fmt: skip
    assert part.lines == [
        {
            "hidden": "8", "system": "baseline schedule=prefetch", "epoch": "2.20 s",
            "bound": "2.00 s", "floor": "",
            "of bound": "1.10x", "sample": "1.00x", "memory IO": "1.25x", "compute": "1.50x",
        }
    ]  # fmt: skip


def test_floor_is_shown_next_to_the_bound():
    """Of a foreign sampler the floor alone may be."""
    rows = [cell("a", "prefetch"), cell("b", "prefetch", hidden=16), cell("c", "serial", 0.0)]
    floors = [m.metric(name, m.EPOCH, m.FLOOR, 0.5) for name in "bc"]
    part = OVERLAP.table(rows, [*metrics_of("a"), *floors])
    assert tuple(part.heads[2:5]) == ("epoch", "bound", "floor")
    assert [(line["bound"], line["floor"]) for line in part.lines] == [
        ("2.00 s", ""),
        ("", "500 ms"),
    ]


def test_a_phase_that_is_not_run_has_no_column():
    part = OVERLAP.table([cell("a", "prefetch", until="memory_io")], metrics_of("a", (1.0, 1.2)))
    assert tuple(part.heads[-2:]) == ("sample", "memory IO")


@pytest.mark.parametrize(
    ("rows", "metrics"),
    [
        ([], []),
        ([cell("a", "serial", None)], metrics_of("a")),
        ([cell("a", "prefetch")], []),
        ([cell("a", "prefetch", status="incorrect")], metrics_of("a")),
    ],
)
def test_without_overlap_or_a_bound_there_are_no_lines(rows, metrics):
    assert OVERLAP.table(rows, metrics).lines == []
