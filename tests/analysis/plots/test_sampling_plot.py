import json
import re

import pytest

from gnnbench.analysis.plots import draw, sampling, style
from gnnbench.schema import CELLS, STAGES, VERSION, reader, writer

BASE = {
    "experiment": "sampling", "reference": "baseline", "dataset": "d", "until": "sample",
    "device": "cpu", "threads": 2, "batch_size": 1024, "fanouts": "15/10/5", "status": "ok",
    "batches": 100, "epoch_wall_s": 1.1, "judged": "sample_time_s", "schema_version": VERSION,
}  # fmt: skip


def cell(number, sampler, time, **values):
    ends = {} if time is None else {"ci_low_s": time * 0.9, "ci_high_s": time * 1.2}
    return {
        **BASE, "id": str(number), "system": "baseline", "sample_time_s": time, "judged_s": time,
        "recipe": json.dumps({"sampler": {"name": sampler}}), **ends, **values,
    }  # fmt: skip


@pytest.fixture
def run(tmp_path):
    def make(cells, stages=()):
        writer.write_csv(tmp_path / "cells.csv", CELLS, cells)
        writer.write_csv(tmp_path / "stages.csv", STAGES, stages)
        return reader.read(tmp_path)

    return make


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
    figure = sampling.figure(run(rows, stages))
    (ax,) = figure.axes
    heights = [p.get_height() for p in ax.patches]
    assert heights == pytest.approx([5, 1, 7, 3.5])  # pick, id map, an outline; a whole
    markers = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "D"]
    assert markers == pytest.approx([7.0, 3.5])
    labels = [t.get_text() for t in ax.get_xticklabels()]
    assert labels == ["baseline\nbaseline", "baseline\nfastsample"]
    assert any(t.get_text().endswith("2.00x\nequivalent") for t in ax.texts)


def test_unreliable_row_is_marked_and_legend_has_only_drawn_parts(run):
    figure = sampling.figure(run([cell(1, "a", 0.5), cell(2, "b", 0.5, doubtful="busy")]))
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()][1] == "baseline\nb (?)"
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert [t.split(":")[0].partition(" (")[0] for t in texts] == [
        "stages not measured", "measured sampling time", "(?), pale",
    ]  # fmt: skip


def test_a_panel_per_dataset_fanouts_and_batch_size(run):
    rows = [
        cell(1, "a", 0.5), cell(2, "a", 0.5, batch_size=8000), cell(3, "a", 0.5, fanouts="5/5"),
    ]  # fmt: skip
    titles = [ax.get_title() for ax in sampling.figure(run(rows)).axes]
    assert titles == ["d, 15/10/5, batch 1024", "d, 15/10/5, batch 8000", "d, 5/5, batch 1024"]


def test_a_grid_of_batch_sizes_is_lines(run):
    rows = [
        cell(f"{s}{b}", s, t * b / 1e3, batch_size=b)
        for s, t in (("a", 1.0), ("b", 0.5))
        for b in (2048, 1024, 4096)
    ]
    (ax,) = sampling.figure(run(rows)).axes
    assert [line.get_label() for line in ax.lines] == ["baseline a", "baseline b"]
    assert list(ax.lines[0].get_xdata()) == [1024, 2048, 4096]
    assert list(ax.lines[1].get_ydata()) == pytest.approx([5.12, 10.24, 20.48])


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
    assert [t.get_text() for t in ax.get_xticklabels()][1] == "baseline\nb (?)"
    assert [("unstable" in t.get_text()) for t in ax.texts] == [False, True]
