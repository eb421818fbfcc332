"""The figure of rooflines, from rows that the tests write."""

import pytest
from plot_rows import lines, plot_cell

from gnnbench.analysis.plots import draw, roofline


def cell(number, aggregate="csr", **values):
    more = {"model": "gcn", "batch_size": 8, "fanouts": "5/5", "hidden": 16, **values}
    return plot_cell(number, "roofline", "compute", {"aggregate": {"name": aggregate}}, **more)


def roof(name, level, rate, unit="B/s", row_bytes=0, device="cpu", threads=2):
    return {
        "kind": "ceiling", "name": name, "level": level, "unit": unit, "value": rate * 1e9,
        "row_bytes": row_bytes, "device": device, "threads": threads,
    }  # fmt: skip


ROOFS = [
    roof("fma", "", 100.0, "flop/s"), roof("copy", "memory", 8.0), roof("read", "memory", 10.0),
    roof("read", "L2", 80.0), roof("rows", "memory", 5.0, row_bytes=64),
]  # fmt: skip


def kernel(number, direction="forward", rate=3.0, layer=1, name="aggregate", **values):
    flops = name == "aggregate"
    return {
        "kind": "kernel", "id": str(number), "device": "cpu", "threads": 2, "name": name,
        "direction": direction, "layer": layer, "width": 16, "unit": "flop/s" if flops else "B/s",
        "value": rate * 1e9, "low": 0.9e9 * rate, "high": 1.2e9 * rate, "time_s": 0.002,
        "flops": 100 if flops else 0, "intensity": 0.5 if flops else None,
        "asked_intensity": 0.25 if flops else None, "of_ceiling": 0.6, **values,
    }  # fmt: skip


def marks(ax):
    """Places of all single marks, by the mark and whether it is hollow."""
    return {
        (line.get_marker(), line.get_markerfacecolor() == "none"): (
            float(line.get_xdata()[0]), float(line.get_ydata()[0])
        )
        for line in ax.lines
        if len(line.get_xdata()) == 1 and line.get_marker() not in ("None", "_")
    }  # fmt: skip


def test_kernels_are_drawn_at_their_intensity_below_measured_peaks(run):
    seen = {"memory_intensity": 0.4}
    rows = [*ROOFS, kernel(1, **seen), kernel(1, "backward", 2.0), kernel(1, "backward, kept", 4.0)]
    forward, backward, times = roofline.figure(run([cell(1)], roofline=rows)).axes
    assert forward.get_xscale() == forward.get_yscale() == "log"
    drawn = lines(forward)
    assert drawn.keys() == {"memory, 10 GB/s", "L2, 80 GB/s", "multiply-adds, 100 GFLOP/s"}
    # From a quarter of the least intensity to four times the largest; the slope is the bandwidth.
    xs, ys = drawn["memory, 10 GB/s"]
    assert xs == pytest.approx([0.25 / 4, 0.5 * 4]) and ys == pytest.approx([10 * x for x in xs])
    xs, ys = drawn["L2, 80 GB/s"]
    assert xs[-1] == pytest.approx(100 / 80) and ys[-1] == pytest.approx(100)
    assert marks(forward) == {
        ("o", True): (0.25, 3.0), ("o", False): (0.5, 3.0), ("x", False): (0.4, 3.0),
    }  # fmt: skip
    assert marks(backward)["o", False] == (0.5, 2.0)
    assert [p.get_width() for p in times.patches] == pytest.approx([2.0, 2.0])
    assert [t.get_text() for t in times.texts] == ["60%", "60%"]


def test_aggregations_have_colours_layers_and_widths_marks(run):
    cells = [cell(1), cell(2, "tuned"), cell(3, hidden=32)]
    rows = [*ROOFS, kernel(1), kernel(1, layer=2), kernel(2, rate=6.0), kernel(3, rate=5.0)]
    figure = roofline.figure(run(cells, roofline=rows))
    (legend,) = figure.legends
    texts = [t.get_text() for t in legend.get_texts()]
    assert texts[:5] == [
        "baseline aggregate=tuned", "baseline aggregate=csr",  # the fastest first
        "hidden 16, layer 1, 16 wide", "hidden 16, layer 2, 16 wide", "hidden 32, layer 1, 16 wide",
    ]  # fmt: skip
    assert {"memory, 10 GB/s", "multiply-adds, 100 GFLOP/s"} <= set(texts)
    colours = {p.get_facecolor() for p in figure.axes[2].patches}
    assert len(colours) == 2 and len(figure.axes[2].patches) == 4


def test_unreliable_kernels_are_marked_and_gathers_have_bars_only(run):
    rows = [*ROOFS, kernel(1, doubtful="above"), kernel(1, "", name="gather", layer=0)]
    forward, backward, times = roofline.figure(run([cell(1)], roofline=rows)).axes
    assert [t.get_text() for t in forward.texts] == ["(?)"]
    assert not backward.lines
    assert [t.get_text() for t in times.texts] == ["60%(?)", "60%"]


def test_only_the_first_device_and_dataset_is_drawn_and_the_others_are_counted(run):
    cells = [cell(1), cell(2, device="cuda", threads=16), cell(3, dataset="e")]
    other = {"device": "cuda", "threads": 16}
    rows = [*ROOFS, roof("copy", "memory", 4000.0, **other), kernel(1), kernel(2, **other),
            kernel(3)]  # fmt: skip
    figure = roofline.figure(run(cells, roofline=rows))
    assert [ax.get_title() for ax in figure.axes[:2]] == [
        "aggregation, forward", "aggregation, backward",
    ]  # fmt: skip
    assert lines(figure.axes[0]).keys() >= {"memory, 10 GB/s"}
    assert figure.get_suptitle().endswith("d, cpu, 2 threads\n2 more settings in roofline.csv")


def test_incorrect_cells_and_runs_without_kernels_are_not_drawn(run, tmp_path):
    assert roofline.figure(run([cell(1, status="incorrect")], roofline=[*ROOFS, kernel(1)])) is None
    assert roofline.figure(run([cell(1)], roofline=[])) is None
    run([cell(1)], roofline=[*ROOFS, kernel(1)])
    assert [p.name for p in draw(tmp_path, ["roofline"])] == ["roofline.png", "roofline.svg"]
