"""The figure of gather bandwidth, from rows that the tests write."""

import json

import matplotlib.pyplot as plt
import pytest
from plot_rows import lines, plot_cell

from gnnbench.analysis.plots import bandwidth, draw, style


def cell(number, store="host", **values):
    sizes = {"nodes": 1_000_000, "feature_dim": 256, "batch_size": 125_000, "batches": 4}
    more = {"dataset": "rows@1Mx256", "fanouts": "", **sizes, **values}
    return plot_cell(number, "bandwidth", "memory_io", {"features": {"name": store}}, **more)


def metric(number, name, value, where="", low=None, high=None):
    return {
        "id": str(number), "stage": "features", "name": name, "where": where, "value": value,
        "low": low, "high": high,
    }  # fmt: skip


def gather(number, rate, copied, where="host", requests=(8.0, 8.0, 8.0)):
    ways = zip(("naive", "aligned", "lines"), requests, strict=True)
    return [
        metric(number, "row_rate", rate * 1e9, low=0.9e9 * rate, high=1.1e9 * rate),
        metric(number, "of_copy", rate / copied),
        metric(number, "copy_rate", copied * 1e9, where),
        *(metric(number, "requests_per_row", value, way) for way, value in ways),
    ]


WIDER = {"dataset": "rows@996kx257", "nodes": 996_000, "feature_dim": 257, "batch_size": 124_500}


def test_rates_and_requests_by_the_width_of_rows(run):
    """Fig. 8: tables of a size, another width; copies stand as a line of their own."""
    cells = [cell(1), cell(2, "dgl"), cell(3, **WIDER), cell(4, "dgl", **WIDER)]
    metrics = [
        *gather(1, 4.0, 5.0), *gather(2, 3.0, 5.0),
        *gather(3, 3.5, 5.2, requests=(16.8, 10.4, 9.0)),
        *gather(4, 2.5, 5.4, requests=(16.8, 10.4, 9.0)),
    ]  # fmt: skip
    rates, requests = bandwidth.figure(run(cells, metrics)).axes
    assert rates.get_title() == "cpu, table of 1 GB, 1/8 a gather"
    assert lines(rates) == {
        "baseline features=host": ([1024, 1028], [4.0, 3.5]),
        "baseline features=dgl": ([1024, 1028], [3.0, 2.5]),
        "copy, host": ([1024, 1028], [5.0, pytest.approx(5.3)]),
    }
    assert lines(requests) == {
        "requests, naive": ([1024, 1028], [8.0, 16.8]),
        "requests, aligned (shifted)": ([1024, 1028], [8.0, 10.4]),
        "requests, lines that contain it": ([1024, 1028], [8.0, 9.0]),
    }
    assert rates.get_ylim()[1] < 7 and rates.get_xscale() == "linear"


def test_rates_by_the_number_of_rows_and_by_the_size_of_the_table(run):
    larger = {"dataset": "rows@8Mx256", "nodes": 8_000_000}
    cells = [cell(1), cell(2, batch_size=1000), cell(3, **larger)]
    metrics = [*gather(1, 4.0, 5.0), *gather(2, 2.0, 5.0), *gather(3, 3.0, 5.0)]
    by_rows, by_table = bandwidth.figure(run(cells, metrics)).axes
    assert by_rows.get_title() == "cpu, rows of 1024 B, table of 1 GB"
    assert lines(by_rows)["baseline"] == ([1000, 125_000], [2.0, 4.0])
    assert by_rows.get_xscale() == "log"
    assert by_table.get_title() == "cpu, rows of 1024 B, 125,000 a gather"
    assert lines(by_table)["baseline"] == ([1.0, 8.2], [4.0, 3.0])


def test_gathers_outside_any_sweep_are_points(run):
    cells = [cell(n, store, device="cuda") for n, store in enumerate(["host", "uva", "gpu"])]
    metrics = [
        *gather(0, 20.0, 55.0, "host_copy"), *gather(1, 50.0, 55.2, "zero_copy"),
        *gather(2, 1500.0, 2000.0, "device"),
    ]  # fmt: skip
    link, memory = bandwidth.figure(run(cells, metrics)).axes
    sizes = "rows of 1024 B, table of 1 GB, 125,000 a gather"
    titles = [f"cuda, host memory, {sizes}", f"cuda, its memory, {sizes}"]
    assert [ax.get_title().replace("\n", " ") for ax in (link, memory)] == titles
    assert [t.get_text() for t in link.texts] == ["50", "20"]  # the fastest on the left
    values = {label: ys[0] for ax in (link, memory) for label, (_, ys) in lines(ax).items()}
    assert values == {
        "baseline features=host": 20.0, "baseline features=uva": 50.0,
        "baseline features=gpu": 1500.0, "copy over the link": pytest.approx(55.1),
        "copy, device": 2000.0,
    }  # fmt: skip


def test_unreliable_rate_is_marked(run):
    cells = [cell(0, "host"), cell(1, "dgl", doubtful="busy")]
    figure = bandwidth.figure(run(cells, [*gather(0, 20.0, 55.0), *gather(1, 50.0, 55.0)]))
    assert [t.get_text() for t in figure.axes[0].texts] == ["(?)", "50", "20"]
    assert figure.legends[0].get_texts()[-1].get_text().startswith("(?)")


def test_long_interval_is_cut_off_with_an_arrow(run):
    cells = [cell(1), cell(2, **WIDER)]
    wide = metric(1, "row_rate", 4e9, low=1e8, high=9e10)
    figure = bandwidth.figure(run(cells, [wide, *gather(1, 4.0, 5.0)[1:], *gather(2, 3.0, 5.0)]))
    ax = figure.axes[0]
    arrows = [line.get_ydata()[0] for line in ax.lines if line.get_gid() == "cut off"]
    assert len(arrows) == 1 and 5.0 < arrows[0] < ax.get_ylim()[1] < 9.0
    assert "interval cut off" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_equal_lines_of_requests_are_one(run):
    cells = [cell(1), cell(2, **WIDER)]
    _, requests = bandwidth.figure(run(cells, [*gather(1, 4.0, 5.0), *gather(2, 3.0, 5.0)])).axes
    assert lines(requests).keys() == {"requests, naive = aligned (shifted) = lines that contain it"}


def test_rates_by_the_share_of_the_multiprocessors(run):
    """Fig. 10: no limit is a horizontal line."""
    cells = [
        cell(n, device="cuda", recipe=json.dumps({
            "features": {"name": "uva"}, "schedule": {"name": "prefetch", "sms": sms},
        }))
        for n, sms in enumerate([0, 16, 8])
    ]  # fmt: skip
    metrics = [m for n, r in enumerate([50.0, 48.0, 30.0]) for m in gather(n, r, 55.0, "zero_copy")]
    (ax,) = bandwidth.figure(run(cells, metrics)).axes
    assert ax.get_xlabel() == "multiprocessors of a green context"
    assert lines(ax) == {
        "baseline": ([8, 16], [30.0, 48.0]),
        "baseline, not limited": ([0, 1], [50.0, 50.0]),
        "copy over the link": ([8, 16], [55.0, 55.0]),
    }


def budgeted(number, access="page-ordered", blocks=16, sms=None):
    """A cell of both budgets' sweep, as it is planned."""
    uva = {"name": "uva", "access": access, "memory": "registered"}
    if access == "page-ordered":
        uva["blocks"] = blocks
    schedule = {"name": "serial"} if sms is None else {"name": "prefetch", "sms": sms}
    recipe = json.dumps({"features": uva, "schedule": schedule})
    return cell(number, device="cuda", recipe=recipe)


def test_rates_by_either_budget_of_multiprocessors(run):
    """A green context's and a capped grid's have a panel each; one panel tells nothing of what the
    other varies, and no cell is drawn alone."""
    cells = [
        budgeted(0, sms=0), budgeted(1, sms=8), budgeted(2, "naive", sms=0),
        budgeted(3, "naive", sms=8), budgeted(4), budgeted(5, blocks=1), budgeted(6, blocks=64),
    ]  # fmt: skip
    rates = [53.0, 40.0, 50.0, 20.0, 52.0, 7.0, 51.0]
    metrics = [m for n, rate in enumerate(rates) for m in gather(n, rate, 55.0, "zero_copy")]
    context, grid = bandwidth.figure(run(cells, metrics)).axes
    assert context.get_xlabel() == "multiprocessors of a green context"
    assert lines(context) == {
        "baseline features.access=page-ordered": ([8], [40.0]),
        "baseline features.access=page-ordered, not limited": ([0, 1], [53.0, 53.0]),
        "baseline features.access=naive": ([8], [20.0]),
        "baseline features.access=naive, not limited": ([0, 1], [50.0, 50.0]),
        "copy over the link": ([8], [55.0]),
    }
    assert grid.get_xlabel() == "thread blocks of a capped grid"
    assert lines(grid) == {
        "baseline": ([1, 16, 64], [7.0, 52.0, 51.0]),
        "copy over the link": ([1, 16, 64], [55.0, 55.0, 55.0]),
    }


def test_grid_budget_is_recognised_inside_other_stores(run):
    """An option is recognised at any depth; gathers outside a sweep are points."""
    cells = [
        cell(n, device="cuda", recipe=json.dumps({
            "features": {"name": "match", "table": {"name": "uva", "blocks": blocks}},
        }))
        for n, blocks in enumerate([2, 4])
    ]  # fmt: skip
    cells.append(cell(2, "dgl", device="cuda"))
    metrics = [m for n, r in enumerate([20.0, 40.0, 48.0]) for m in gather(n, r, 55.0, "zero_copy")]
    grid, points = bandwidth.figure(run(cells, metrics)).axes
    assert lines(grid)["baseline"] == ([2, 4], [20.0, 40.0])
    assert ([0], [48.0]) in lines(points).values()


def test_two_budgets_in_one_run_have_a_panel_each(run):
    cells = [
        budgeted(2 * n + m, blocks=blocks, sms=sms)
        for n, blocks in enumerate([4, 16])
        for m, sms in enumerate([8, 16])
    ]
    metrics = [m for n in range(4) for m in gather(n, 30.0 + n, 55.0, "zero_copy")]
    context, grid = bandwidth.figure(run(cells, metrics)).axes
    assert lines(context).keys() == {
        "baseline features.blocks=4", "baseline features.blocks=16", "copy over the link",
    }  # fmt: skip
    assert lines(grid)["baseline schedule.sms=16"] == ([4, 16], [31.0, 33.0])


def test_devices_have_panels_of_their_own(run):
    cells = [cell(1), cell(2, device="cuda")]
    figure = bandwidth.figure(
        run(cells, [*gather(1, 4.0, 5.0), *gather(2, 20.0, 55.0, "host_copy")])
    )
    assert [ax.get_title().partition(",")[0] for ax in figure.axes] == ["cpu", "cuda"]


def test_incorrect_rates_and_rates_without_a_copy_are_not_drawn(run, tmp_path):
    cells = [cell(1, status="incorrect"), cell(2, "dgl")]
    without_rate = run(cells, [*gather(1, 9.0, 5.0), metric(2, "row_rate", 3e9)])
    assert bandwidth.figure(without_rate) is None
    assert draw(tmp_path, ["bandwidth"]) == []


def test_figure_is_written_as_files(run, tmp_path):
    run([cell(1), cell(2, **WIDER)], [*gather(1, 4.0, 5.0), *gather(2, 3.0, 5.0)])
    assert [p.name for p in draw(tmp_path, ["bandwidth"])] == ["bandwidth.png", "bandwidth.svg"]


def test_overlapping_tick_labels_are_left_out():
    """Rows of 1024 to 1044 bytes and one of 480: the axis has room for two of them."""
    figure, ax = plt.subplots()
    style.set_ticks(ax, [480, 1024, 1028, 1032, 1044])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["480", "1,024", "", "", ""]
    style.set_ticks(ax, [64, 128, 512, 1024])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["64", "128", "512", "1,024"]
    plt.close(figure)
