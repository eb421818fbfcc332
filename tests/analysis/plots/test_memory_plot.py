"""The figure of memory, from rows that the tests write."""

from plot_rows import plot_cell

from gnnbench.analysis import metrics as m
from gnnbench.analysis.plots import draw, memory
from gnnbench.analysis.table import main_tables
from gnnbench.core.counters import MEMORY_BYTES

MIB = 1 << 20


def cell(name, store="uva", device="cuda", **values):
    recipe = {"features": {"name": store}}
    return plot_cell(name, "memory", "compute", recipe, device=device, **values)


def sizes(name, on_host=0, **mebibytes):
    rows = [m.metric(name, c, MEMORY_BYTES, size * MIB) for c, size in mebibytes.items()]
    rows.append(m.metric(name, m.EPOCH, MEMORY_BYTES, sum(mebibytes.values()) * MIB))
    return rows + [m.metric(name, "features", MEMORY_BYTES, on_host * MIB, where="held")] * bool(
        on_host
    )


def bars(ax):
    """Start and length of the bars by position."""
    drawn = {}
    for p in ax.patches:
        if p.get_width():
            drawn.setdefault(round(p.get_y() + p.get_height() / 2), []).append(
                (p.get_x(), p.get_width())
            )
    return drawn


def test_components_are_stacked_up_to_the_peak(run):
    cells = [cell("a"), cell("b", "match"), cell("c", "gpu", status="oom_gpu")]
    rows = [
        *sizes("a", topology=3, rows=2, blocks=1, other=4, on_host=2048),
        *sizes("b", topology=3, rows=2, features=5, unheard_of=1, other=1),
    ]
    figure = memory.figure(run(cells, rows))
    (ax,) = figure.axes
    assert ax.get_title() == "d, cuda" and ax.get_xlabel() == "memory [MiB]"
    assert bars(ax) == {
        0: [(0, 3), (3, 1), (4, 2), (6, 4)], 1: [(0, 3), (3, 5), (8, 2), (10, 2)],
    }  # fmt: skip
    assert [t.get_text() for t in ax.texts] == [
        "10 MiB, + 2 GiB on the host", "12 MiB", "no result: oom_gpu", "memory",
    ]  # fmt: skip
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert [t.split(":")[0] for t in texts] == [
        "topology", "features", "blocks of the batch", "feature rows of the batch", "other",
    ]  # fmt: skip


def test_memory_before_set_up_is_written_next_to_the_bar(run):
    figure = memory.figure(run([cell("a", device="cpu")], sizes("a", process=300, rows=2, other=1)))
    (ax,) = figure.axes
    assert bars(ax) == {0: [(0, 2), (2, 1)]}
    assert [t.get_text() for t in ax.texts] == ["3 MiB, + 300 MiB process", "memory"]


def test_smallest_is_on_top_and_an_incorrect_cell_is_not_drawn_as_a_value(run):
    cells = [cell("a"), cell("b", "match"), cell("c", "gpu", status="incorrect")]
    (ax,) = memory.figure(
        run(cells, [*sizes("a", rows=5), *sizes("b", rows=2), *sizes("c", rows=1)])
    ).axes
    assert bars(ax) == {0: [(0, 2)], 1: [(0, 5)]}
    assert "no result: incorrect" in [t.get_text() for t in ax.texts]


def test_the_table_of_a_run_has_the_memory_of_each_cell(run):
    shown = run([cell("a", judged_s=1.0, epoch_wall_s=1.0)], sizes("a", rows=2, other=1))
    (table,) = main_tables(shown.cells, shown.metrics)
    assert [line["memory"] for line in table.lines] == ["3.0 MiB"] and "memory" in table.heads


def test_unreliable_cell_is_marked(run):
    figure = memory.figure(run([cell("a", doubtful="busy")], sizes("a", rows=2)))
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["baseline (?)"]
    assert figure.legends[0].get_texts()[-1].get_text().startswith("(?)")


def test_runs_without_memory_metrics_have_no_figure(run, tmp_path):
    assert memory.figure(run([cell("a")], [m.metric("a", m.EPOCH, m.WALL, 1.0)])) is None
    assert draw(tmp_path, ["memory"]) == []
