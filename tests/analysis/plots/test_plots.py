"""Tests read texts of the SVG and artists, not pixels."""

import pytest

from gnnbench.analysis import metrics as m
from gnnbench.analysis.plots import breakdown, draw, loss, page, style
from gnnbench.core.errors import UsageError
from gnnbench.schema import CELLS, METRICS, SAMPLES, VERSION, reader, writer

BASE = {
    "experiment": "breakdown", "reference": "baseline", "dataset": "d", "until": "compute",
    "model": "gcn", "device": "cpu", "threads": 2, "batch_size": 1024, "fanouts": "15/10/5",
    "status": "ok", "n": 3, "batches": 4, "epoch_batches": 9, "schema_version": VERSION,
    "recipe": "{}", "seed": 0, "hidden": 64, "judged": "epoch_wall_s",
}  # fmt: skip
TIMES = {"overlap_s": 0.5, "idle_s": 0.25, "epoch_wall_s": 3.75, "judged_s": 3.75}
ALONE = {"sample": 1.0, "memory_io": 0.25, "compute": 1.75}
WALL = {"value": 3.75, "low": 3.5, "high": 4.5}


def cell(system, **values):
    return {**BASE, "id": system, "system": system, **values}


def alone(row):
    phases = [m.metric(row["id"], phase, m.ALONE, time) for phase, time in ALONE.items()]
    return [*phases, {**m.metric(row["id"], m.EPOCH, m.WALL, 0.0), **WALL}]


ROWS = [
    cell("baseline", **TIMES, verdict="reference"),
    cell("dgl", **TIMES, ratio=0.81, work_class="equivalent", doubtful="spun"),
    cell("pyg", status="missing_dep", reason="gone"),
    cell("pyg-native-sampler", **TIMES, stand_in_for="pyg", work_class="different"),
    cell("wrong", **TIMES, status="incorrect", reason="lost edges"),
    cell("big", status="oom_host"),
    cell("baseline", id="x", dataset="elsewhere", status="missing_dep"),
]
LOSSES = [("baseline", 1, [3.0, 2.0]), ("baseline", 2, [3.2, 2.1]), ("dgl", 3, [3.1, 2.2]),
          ("wrong", 4, [9.0]), ("cut-off", 5, [9.0])]  # fmt: skip


def write(folder, rows, losses):
    writer.write_csv(folder / "cells.csv", CELLS, rows)
    numbers = [x for r in rows if r.get("epoch_wall_s") for x in alone(r)]
    writer.write_csv(folder / "metrics.csv", METRICS, numbers)
    samples = [
        {"id": s, "system": s, "dataset": "d", "model": "gcn", "worker": w, "loss": v}
        for s, w, values in losses
        for v in values
    ]
    writer.write_csv(folder / "samples.csv", SAMPLES, samples)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path, ROWS, LOSSES)


def test_breakdown_shows_bars_failures_and_marks(folder):
    figure = breakdown.figure(reader.read(folder))
    (ax,) = figure.axes
    bars = ax.patches
    assert len(bars) == 3 * 5  # phases alone, overlap, idle; failures have no bar
    assert [b.get_width() for b in bars[:5]] == [1.0, 0.25, 1.75, 0.5, 0.25]
    assert [b.get_x() for b in bars[:5]] == [0.0, 1.0, 1.25, 3.0, 3.5]
    texts = [t.get_text() for t in ax.texts]
    assert {f"no result: {s}" for s in ("missing_dep", "incorrect", "oom_host")} <= set(texts)
    assert "0.81x" in texts and "speed-up over baseline" in texts
    assert any("different work" in t for t in texts)
    assert ax.get_xlabel() == "time per epoch [s], first 4 batches"
    assert ax.yaxis_inverted()  # the first row on top
    assert "2 threads" in figure.get_suptitle() and "batch 1024" in figure.get_suptitle()
    assert legend_of(figure)[-1] == "not measured: elsewhere, gcn"
    assert figure.get_supxlabel() == ""  # the place where the legend is


def test_system_with_substitute_stages_is_marked(tmp_path):
    systems = ("baseline", "zero-copy")
    for device, marked in (("cpu", ["zero-copy†"]), ("cuda", [])):
        rows = [cell(name, **TIMES, device=device) for name in systems]
        figure = breakdown.figure(reader.read(write(tmp_path, rows, [])))
        names = [t.get_text().partition("\n")[0] for t in figure.axes[0].get_yticklabels()]
        assert [n for n in names if "†" in n] == marked
        assert ("† designed for a GPU" in figure.get_suptitle()) == bool(marked)


def test_long_interval_is_cut_off_with_an_arrow(tmp_path):
    rows = [cell("baseline", **TIMES), cell("dgl", **TIMES, verdict="unclear")]
    folder = write(tmp_path, rows, [])
    metrics = (folder / "metrics.csv").read_text()
    (folder / "metrics.csv").write_text(metrics.replace("4.5", "37.5", 1))
    figure = breakdown.figure(reader.read(folder))
    (ax,) = figure.axes
    ends = [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "cut off"]
    assert ends == [7.5] and 7.5 < ax.get_xlim()[1] < 37.5  # two bars, and an arrow
    assert figure.legends[0].get_texts()[-1].get_text() == "interval cut off"


def drawn_as(tmp_path, walls):
    """The panel of bars of these times, and its legend's words."""
    rows = [
        cell(f"s{n}", **{**TIMES, "id": f"s{n}", "epoch_wall_s": w}) for n, w in enumerate(walls)
    ]
    folder = write(tmp_path, rows, [])
    (folder / "metrics.csv").unlink()  # plain bars
    figure = breakdown.figure(reader.read(folder))
    return figure.axes[0], legend_of(figure)


@pytest.mark.parametrize("walls,longest", [([1.0, 0.5, 20.0], 1.0), ([30.0, 1.0, 0.5, 20.0], 1.0)])
def test_much_longer_bar_is_cut_off_and_labelled_with_its_time(tmp_path, walls, longest):
    ax, words = drawn_as(tmp_path, walls)
    assert [b.get_width() for b in ax.patches] == [min(w, longest) for w in walls]
    cut = [w for w in walls if w > longest]
    arrows = [line for line in ax.lines if line.get_gid() == "bar"]
    assert [line.get_xdata()[0] for line in arrows] == [longest] * len(cut)
    assert [t.get_text().split(",")[0] for t in ax.texts if " s" in t.get_text()] == [
        f"{w:.3g} s" for w in cut
    ]
    assert words[-1].startswith("bar cut off")


@pytest.mark.parametrize("walls", [[1.0, 20.0], [1.0, 3.0, 9.0], [20.0], [1.0, 20.0, 20.0]])
def test_at_least_half_of_the_bars_are_drawn_whole(tmp_path, walls):
    ax, words = drawn_as(tmp_path, walls)
    cut = walls == [1.0, 20.0]
    assert [b.get_width() for b in ax.patches] == ([1.0, 1.0] if cut else walls)
    assert ("bar cut off" in words[-1]) == cut


@pytest.mark.parametrize(("ratio", "room"), [({"ratio": None}, 1.05), ({"ratio": 2.0}, 1.05)])
def test_bars_without_captions_fill_the_panel(tmp_path, ratio, room):
    rows = [cell(name, **{**TIMES, **ratio}) for name in ("baseline", "dgl")]
    (ax,) = breakdown.figure(reader.read(write(tmp_path, rows, []))).axes
    assert any(t.get_text() for t in ax.texts) == (ratio["ratio"] is not None)
    assert ax.get_xlim()[1] == pytest.approx(4.5 * room)


def test_fastest_is_on_top_and_a_line_marks_the_reference(tmp_path):
    rows = [
        cell("dgl", **{**TIMES, "reference_id": "dgl", "ratio": None}),
        cell("pyg", **{**TIMES, "epoch_wall_s": 5.0, "judged_s": 5.0, "reference_id": "dgl",
                       "ratio": 0.75}),
        cell("best", **{**TIMES, "epoch_wall_s": 2.0, "judged_s": 2.0, "reference_id": "dgl",
                        "ratio": 2.0}),
    ]  # fmt: skip
    (ax,) = breakdown.figure(reader.read(write(tmp_path, rows, []))).axes
    labels = ax.get_yticklabels()
    assert [t.get_text() for t in labels] == ["best", "dgl", "pyg"]
    assert [t.get_fontweight() for t in labels] == ["bold", "normal", "normal"]
    assert [t.get_fontstyle() for t in labels] == ["normal", "italic", "italic"]
    (line,) = [one for one in ax.lines if one.get_gid() == "reference"]
    assert line.get_xdata()[0] == TIMES["epoch_wall_s"]


def test_bars_of_memory_io_are_what_the_ratios_compare(tmp_path):
    """Not whole epochs, next to which a ratio of memory IO would look wrong."""
    own = {**TIMES, "until": "memory_io", "memory_io_time_s": 0.5, "judged_s": 0.5}
    figure = breakdown.figure(reader.read(write(tmp_path, [cell("baseline", **own)], [])))
    (bar,) = figure.axes[0].patches
    assert bar.get_width() == 0.5
    assert figure.axes[0].get_xlabel().startswith("memory IO time per epoch")
    assert "Memory IO time" in [t.get_text() for t in figure.texts]


def test_unreliable_interval_does_not_extend_the_axis(tmp_path):
    rows = [cell("baseline", **TIMES), cell("dgl", **{**TIMES, "status": "unstable"})]
    folder = write(tmp_path, rows, [])
    metrics = (folder / "metrics.csv").read_text()
    (folder / "metrics.csv").write_text("7.0".join(metrics.rsplit("4.5", 1)))
    (ax,) = breakdown.figure(reader.read(folder)).axes
    assert ax.get_xlim()[1] == pytest.approx(4.5 * 1.05)  # of the reliable row
    ends = [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "cut off"]
    assert ends == [4.5]


def test_loss_has_a_curve_per_system_and_leaves_wrong_ones_out(folder):
    (ax,) = loss.figure(reader.read(folder)).axes
    curves = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert curves == {"baseline": pytest.approx([3.1, 2.05]), "dgl (?)": [3.1, 2.2]}
    assert len(ax.collections) == 1  # one band: only baseline ran in two workers


@pytest.mark.parametrize(
    "axis,other,words",
    [("fanouts", "5/5", "fanouts 5/5"), ("seed", 1, "seed 1"), ("hidden", 128, "hidden 128")],
)
def test_cells_that_differ_have_bars_and_curves_of_their_own(tmp_path, axis, other, words):
    rows = [cell("s", **TIMES), cell("s", **{**TIMES, "id": "t", axis: other})]
    run = reader.read(write(tmp_path, rows, [("s", 1, [3.0, 2.0]), ("t", 2, [5.0, 4.0])]))
    (ax,) = loss.figure(run).axes
    curves = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert list(curves.values()) == [[3.0, 2.0], [5.0, 4.0]]
    assert list(curves)[1] == f"s, {words}" and not ax.collections
    (ax,) = breakdown.figure(run).axes
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels[1] == f"s\n{words}" and labels[0] != labels[1]


def test_files_are_png_and_svg_and_the_same_every_time(folder):
    paths = draw(folder, ["breakdown"])
    assert [p.name for p in paths] == ["breakdown.png", "breakdown.svg"]
    first = [p.read_bytes() for p in paths]
    assert first[0].startswith(b"\x89PNG")
    assert b"oom_host" in first[1]
    assert [p.read_bytes() for p in draw(folder, ["breakdown"])] == first


def test_without_any_row_there_is_no_figure(tmp_path):
    writer.write_csv(tmp_path / "cells.csv", CELLS, [])
    assert draw(tmp_path) == []


def test_failures_are_drawn_if_nothing_could_run(tmp_path):
    writer.write_csv(tmp_path / "cells.csv", CELLS, [ROWS[2]])
    assert [p.name for p in draw(tmp_path)] == ["breakdown.png", "breakdown.svg"]


def test_unknown_figure(folder):
    with pytest.raises(UsageError, match="did you mean 'breakdown'"):
        draw(folder, ["brakdown"])


@pytest.mark.parametrize("file", ["cells.csv", "samples.csv", "run.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{", b"a,b\n1,2\n", b"[]"])
def test_a_damaged_file_is_a_sentence(folder, file, content):
    (folder / file).write_bytes(content)
    with pytest.raises(UsageError, match=file):
        reader.read(folder)


def legend_of(figure):
    return [t.get_text() for t in figure.legends[0].get_texts()]


def test_unreliable_row_is_marked_as_in_the_table(folder):
    figure = breakdown.figure(reader.read(folder))
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert [name for name in labels if "(?)" in name] == ["dgl (?)"]
    assert "(?), pale: unreliable; the table says why" in legend_of(figure)


@pytest.mark.parametrize("values", [{"status": "unstable"}, {"doubtful": "spun"}])
def test_only_bars_of_unreliable_rows_are_pale(tmp_path, values):
    rows = [cell("baseline", **TIMES), cell("dgl", **{**TIMES, **values})]
    figure = breakdown.figure(reader.read(write(tmp_path, rows, [])))
    (ax,) = figure.axes
    assert [b.get_alpha() for b in ax.patches] == [None] * 5 + [style.PALE] * 5
    assert [t.get_text() for t in ax.get_yticklabels()] == ["baseline", "dgl (?)"]
    assert "(?), pale: unreliable; the table says why" in legend_of(figure)


def test_without_a_time_there_are_no_bars_no_scale_and_no_legend(tmp_path):
    figure = breakdown.figure(reader.read(write(tmp_path, [ROWS[2], ROWS[5]], [])))
    (ax,) = figure.axes
    assert not ax.patches and not ax.lines and not ax.get_xticks().size and not ax.get_xlabel()
    assert [t.get_text() for t in ax.texts] == ["no result: missing_dep", "no result: oom_host"]
    assert not figure.legends


def test_time_without_phases_has_a_plain_bar(tmp_path):
    folder = write(tmp_path, [cell("baseline", **TIMES)], [])
    (folder / "metrics.csv").unlink()
    figure = breakdown.figure(reader.read(folder))
    (bar,) = figure.axes[0].patches
    assert bar.get_width() == 3.75 and legend_of(figure)[0] == "phases not measured"


def test_the_legend_has_only_the_phases_that_are_drawn(tmp_path):
    row = cell("baseline", **{**TIMES, "overlap_s": 0.0, "idle_s": 0.0}, until="sample")
    folder = write(tmp_path, [row], [])
    numbers = [m.metric("baseline", "sample", m.ALONE, 1.0)]
    writer.write_csv(folder / "metrics.csv", METRICS, numbers)
    assert legend_of(breakdown.figure(reader.read(folder)))[:2] == [
        "sample", "measured time, 95 % interval",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "paths,short",
    [
        (["/home/somebody/graphs/mine.npz"], ["mine.npz"]),
        (["/home/a/g.npz", "/home/b/g.npz"], ["a/g.npz", "b/g.npz"]),
        (["products~twin@0.02"], ["products~twin@0.02"]),
    ],
)
def test_graph_file_is_labelled_with_its_name(tmp_path, paths, short):
    rows = [cell("baseline", **{**TIMES, "id": path, "dataset": path}) for path in paths]
    run = style.short_names(reader.read(write(tmp_path, rows, [])))
    figure = breakdown.figure(run)
    assert [ax.get_title() for ax in figure.axes] == [f"{name}, gcn" for name in short]


def test_a_title_is_no_wider_than_its_figure(folder):
    figure = breakdown.figure(reader.read(folder))
    figure.canvas.draw()
    assert figure._suptitle.get_window_extent().width <= figure.bbox.width


def test_epochs_are_counted_in_whole_numbers(tmp_path):
    row = cell("baseline", **TIMES)
    figure = loss.figure(reader.read(write(tmp_path, [row], [("baseline", 1, [3.0, 2.0, 1.0])])))
    ticks = figure.axes[0].get_xticks()
    assert all(tick == int(tick) for tick in ticks)


@pytest.mark.parametrize("count,most,columns", [(5, 3, 3), (2, 3, 2), (4, 2, 2), (1, 3, 1)])
def test_panels_are_in_rows_of_a_screen_and_one_below_the_other_in_a_paper(count, most, columns):
    figure, axes = page.SCREEN.panels(count, most)
    assert len(axes) == count
    assert axes[0].get_subplotspec().get_gridspec().ncols == columns
    assert figure.get_figwidth() <= page.SCREEN.width
    figure, axes = page.COLUMN.panels(count, most)
    assert axes[0].get_subplotspec().get_gridspec().ncols == 1
    assert figure.get_figwidth() == page.COLUMN.width == 3.35


def test_incorrect_rows_are_last_and_have_no_bar(tmp_path):
    wrong = {**TIMES, "epoch_wall_s": 0.5, "judged_s": 0.5, "status": "incorrect"}
    rows = [cell("dgl", **wrong), cell("baseline", **TIMES)]
    (ax,) = breakdown.figure(reader.read(write(tmp_path, rows, []))).axes
    assert [t.get_text() for t in ax.get_yticklabels()] == ["baseline", "dgl"]
    assert {round(p.get_y() + p.get_height() / 2) for p in ax.patches} == {0}
    assert "no result: incorrect" in [t.get_text() for t in ax.texts]


def test_settings_of_samplers_that_most_rows_share_are_in_the_caption(tmp_path):
    rows = [cell(name, **TIMES, pick="floyd", frontier="cumulative") for name in "abc"]
    rows += [cell("c", **{**TIMES, "id": "d"}, pick="floyd", frontier="new")]
    figure = breakdown.figure(reader.read(write(tmp_path, rows, [])))
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert sorted(labels) == ["a", "b", "c", "c\nfrontier new"]
    assert "frontier cumulative unless a name says otherwise" in figure.get_suptitle()


@pytest.mark.parametrize(
    "name,short",
    [
        ("best sampler=fastsample schedule.depth=8", "best fastsample depth=8"),
        ("best features.ratio=0.1 order=greedy", "best ratio=0.1 greedy"),
        ("baseline features=dgl", "baseline features=dgl"),  # dgl is a sampler, too
    ],
)
def test_keys_of_settings_are_left_out_where_the_value_says_it_all(name, short):
    assert style.without_keys(name) == short


def test_lines_differ_in_colour_or_marker():
    looks = {tuple(style.look(n).values()) for n in range(64)}
    assert len(looks) == 64
