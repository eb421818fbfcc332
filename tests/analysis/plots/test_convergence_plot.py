"""The figure of accuracies, from rows that the tests write."""

import pytest
from plot_rows import plot_cell

from gnnbench.analysis import metrics as m
from gnnbench.analysis.plots import convergence, draw
from gnnbench.schema import CONVERGENCE, writer


def cell(name, system="baseline", dataset="d", **values):
    more = {"system": system, "dataset": dataset, "model": "gcn", "evaluate": "all", **values}
    return plot_cell(name, "convergence", "compute", {}, **{"fanouts": "10/5", **more})


def points(name, trial, *values):
    """Rows of (seconds, validation, test)."""
    return [
        {
            "id": name, "cell": name, "pair": "p", "life": trial, "epoch": epoch, "loss": 1.0,
            "elapsed_s": seconds, "val_accuracy": val, "test_accuracy": test,
        }
        for epoch, (seconds, val, test) in enumerate(values, start=1)
    ]  # fmt: skip


@pytest.fixture
def drawn(run, tmp_path):
    def make(cells, epochs, metrics=()):
        writer.write_csv(tmp_path / "convergence.csv", CONVERGENCE, epochs)
        return convergence.figure(run(cells, list(metrics)))

    return make


FIRST = points("a", 0, (1.0, 0.2, 0.1), (2.0, 0.6, 0.5))
SECOND = points("a", 1, (3.0, 0.4, 0.3), (5.0, 0.8, 0.9), (6.0, 0.9, 0.9))


def test_means_over_trials_by_epoch_and_by_second(drawn):
    stated = m.metric("a", m.LEARNING, m.REACHED, 0.5, where="0.75")
    by_epoch, by_second = drawn([cell("a")], [*FIRST, *SECOND], [stated]).axes
    for ax, places in ((by_epoch, [1, 2]), (by_second, [2.0, 3.5])):
        val, test, line = ax.lines
        assert list(val.get_xdata()) == list(test.get_xdata()) == pytest.approx(places)
        assert list(val.get_ydata()) == pytest.approx([0.3, 0.7])  # epochs of both trials
        assert list(test.get_ydata()) == pytest.approx([0.2, 0.7])
        assert list(line.get_ydata()) == [0.75, 0.75]
        band = ax.collections[0].get_paths()[0].vertices[:, 1]
        assert (min(band), max(band)) == pytest.approx((0.2, 0.8))
    assert by_epoch.get_xlabel() == "epochs trained"
    assert by_second.get_xlabel() == "wall time of the epochs [s]"


def test_systems_share_panels_and_graphs_have_their_own(drawn):
    cells = [cell("a"), cell("b", "dgl"), cell("c", dataset="e"), cell("x", status="incorrect")]
    epochs = [*FIRST, *points("b", 0, (1.0, 0.5, 0.5)), *points("c", 0, (1.0, 0.5, 0.5))]
    figure = drawn(cells, [*epochs, *points("x", 0, (1.0, 0.5, 0.5))])
    axes = figure.axes
    assert [ax.get_title() for ax in axes] == ["d, gcn, all"] * 2 + ["e, gcn, all"] * 2
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert texts == ["baseline", "dgl", "validation, band: all trials", "test", "target accuracy"]
    assert "not drawn, incorrect: baseline" in figure.get_suptitle()
    assert [len(ax.lines) for ax in axes] == [4, 4, 2, 2]


def test_runs_without_evaluation_have_no_figure(run, tmp_path):
    assert convergence.figure(run([cell("a")], [])) is None
    assert draw(tmp_path, ["convergence"]) == []
