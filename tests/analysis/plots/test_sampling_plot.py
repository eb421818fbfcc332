import re

import pytest
from plot_rows import plot_cell

from gnnbench.analysis.plots import draw, sampling, style


def cell(number, sampler, time, **values):
    ends = {} if time is None else {"ci_low_s": time * 0.9, "ci_high_s": time * 1.2}
    times = {"epoch_wall_s": 1.1, "sample_time_s": time, "judged_s": time, **ends}
    more = {"batch_size": 1024, "batches": 100, "seed": 0, **times, **values}
    return plot_cell(number, "sampling", "sample", {"sampler": {"name": sampler}}, **more)


def test_bars_show_stages_and_a_marker_the_measured_time(run):
    stages = [
        {"id": "1", "cell": "x", "stage": stage, "hop": hop, "batches": 20, "host_s": time}
        for stage, hop, time in (("pick", 1, 2e-3), ("pick", 2, 3e-3), ("id_map", 1, 1e-3))
    ]
    rows = [
        cell(1, "baseline", 0.7),
        cell(2, "fastsample", 0.35, ratio=2.0, work_class="equivalent"),
        cell(3, "gone", None, status="crash"), cell(4, "bad", 0.1, status="incorrect"),
    ]  # fmt: skip
    figure = sampling.figure(run(rows, stages=stages))
    (ax,) = figure.axes
    widths = [p.get_width() for p in ax.patches]
    assert widths == pytest.approx([3.5, 5, 1, 7])  # a whole; pick, id map, an outline
    markers = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"]
    assert markers == pytest.approx([3.5, 7.0])
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels[:2] == ["baseline fastsample", "baseline baseline"]
    texts = [t.get_text() for t in ax.texts]
    assert {"2.00x", "7 ms", "no result: crash", "no result: incorrect"} <= set(texts)


def test_a_line_marks_the_reference_and_ratios_are_in_a_column(run):
    rows = [
        cell(1, "baseline", 0.7, reference_id="1"),
        cell(2, "fastsample", 0.35, reference_id="1", ratio=2.0, ratio_ci_low=1.9,
             ratio_ci_high=2.1, verdict="faster"),
    ]  # fmt: skip
    figure = sampling.figure(run(rows))
    (ax,) = figure.axes
    column = [t.get_text() for t in ax.texts if t.get_gid() == "column"]
    assert column == ["2.00x [1.90, 2.10], faster", "reference"]
    (line,) = [line for line in ax.lines if line.get_gid() == "reference"]
    assert line.get_xdata()[0] == pytest.approx(7.0)
    assert "time of the reference" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_unreliable_row_is_marked_and_legend_has_only_drawn_parts(run):
    figure = sampling.figure(run([cell(1, "a", 0.5), cell(2, "b", 0.5, doubtful="busy")]))
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()][1] == "baseline b (?)"
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert [t.split(":")[0].partition(" (")[0] for t in texts] == [
        "stages not measured", "measured sampling time", "(?), pale",
    ]  # fmt: skip


def test_a_panel_per_dataset_fanouts_and_batch_size(run):
    rows = [
        cell(1, "a", 0.5), cell(2, "a", 0.5, batch_size=8000), cell(3, "a", 0.5, fanouts="5/5"),
    ]  # fmt: skip
    titles = [ax.get_title() for ax in sampling.figure(run(rows)).axes]
    assert titles == [
        "d, fanouts 15/10/5, batch 1024", "d, fanouts 15/10/5, batch 8000",
        "d, fanouts 5/5, batch 1024",
    ]  # fmt: skip


def test_a_grid_of_batch_sizes_is_lines(run):
    rows = [
        cell(f"{s}{b}", s, t * b / 1e3, batch_size=b)
        for s, t in (("a", 1.0), ("b", 0.5))
        for b in (2048, 1024, 4096)
    ]
    rows.append(cell("x", "b", 9.0, batch_size=4096, status="incorrect", seed=1))
    figure = sampling.figure(run(rows))
    (ax,) = figure.axes
    names = [t.get_text() for t in figure.legends[0].get_texts()]
    assert names[:2] == ["baseline b, seed 0", "baseline a, seed 0"]  # the fastest first
    lines = [line for line in ax.lines if len(line.get_xdata()) == 3]
    assert list(lines[0].get_xdata()) == [1024, 2048, 4096]
    assert list(lines[0].get_ydata()) == pytest.approx([5.12, 10.24, 20.48])
    assert len(lines) == 2
    assert "not drawn, incorrect: baseline sampler=b, batch 4096, seed 1" in figure.get_suptitle()


def test_runs_without_sampling_have_no_figure(run, tmp_path):
    failed = run([cell(1, "a", None, status="crash", epoch_wall_s=None)])
    assert sampling.figure(failed) is None
    assert draw(tmp_path, ["sampling"]) == []


def test_files(run, tmp_path):
    run([cell(1, "a", 0.5), cell(2, "b", 0.25)])
    png, svg = draw(tmp_path, ["sampling"])
    assert png.stat().st_size > 1000
    assert re.search("time per batch", svg.read_text())


def test_unstable_sampler_is_named_and_pale(run):
    rows = [cell(1, "a", 0.5), cell(2, "b", 0.5, status="unstable")]
    (ax,) = sampling.figure(run(rows)).axes
    assert [b.get_alpha() for b in ax.patches] == [None, style.PALE]
    assert [t.get_text() for t in ax.get_yticklabels()][1] == "baseline b (?)"
    assert [t.get_text() for t in ax.texts] == ["5 ms", "unstable"]
