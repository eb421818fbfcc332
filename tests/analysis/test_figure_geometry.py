"""Figures of the largest committed runs on their canvas: sizes, texts and legends."""

import re
import zlib

import geometry
import pytest
from committed import largest_run_by_figure
from matplotlib.figure import Figure

from gnnbench.analysis import plots
from gnnbench.analysis.plots import bars, page, style
from gnnbench.analysis.plots.bars import Bar, Panel
from gnnbench.schema import reader

HIGHEST = 1600  # pixels, with 150 per inch
LARGEST = largest_run_by_figure()


@pytest.mark.parametrize("pdf", [False, True], ids=["screen", "pdf"])
@pytest.mark.parametrize("name", sorted(LARGEST))
def test_figure_of_a_large_run(name, pdf):
    run = style.labelled(style.short_names(reader.read(LARGEST[name])))
    figure = plots.make(name, run, pdf)
    width, height = figure.get_size_inches()
    assert height * 150 <= HIGHEST
    assert width == 3.35 if pdf else width <= page.SCREEN.width
    renderer = geometry.drawn(figure)
    assert geometry.outside(figure, renderer) == []
    assert geometry.legends_on_panels(figure, renderer) == []
    assert geometry.overlapping(figure, renderer) == []
    assert geometry.smallest_text(figure) >= 7


def bar(number, **values):
    return Bar("s", (f"s{number} features=window order=greedy",), [("red", 1.0)], 1.0, **values)


def test_geometry_finds_texts_and_legends_in_the_wrong_place():
    figure = Figure(figsize=(2, 2), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1], label="a line")
    ax.legend(loc="center")
    ax.text(1.0, 1.0, "far", transform=figure.transFigure)
    ax.text(0.4, 0.4, "one", gid="column")
    ax.text(0.4, 0.4, "two", gid="column", fontsize=5)
    renderer = geometry.drawn(figure)
    assert geometry.outside(figure, renderer) == ["far"]
    assert geometry.legends_on_panels(figure, renderer) == [""]
    assert geometry.overlapping(figure, renderer) == [("one", "two")]
    assert geometry.smallest_text(figure) == 5


@pytest.mark.parametrize(
    "where,panels",
    [(page.SCREEN, 1), (page.SCREEN, 5), (page.SCREEN, 40), (page.COLUMN, 2), (page.COLUMN, 40)],
)
def test_bars_that_do_not_fit_are_counted_and_the_reference_stays(where, panels):
    many = [*map(bar, range(60)), bar(60, is_reference=True, text="reference")]
    drawn = []

    def draw(one):
        drawn[:] = bars.draw(one, [Panel(str(n), "s", many) for n in range(panels)])
        one.head(drawn[0], "Title")
        one.legend(drawn[0], [style.interval_key("a long name " * 40)])
        return drawn[0]

    figure = page.fitted(draw, where)
    _, axes, hidden = drawn
    assert figure.get_figheight() <= where.height and where.height * 150 <= HIGHEST
    renderer = geometry.drawn(figure)
    assert geometry.outside(figure, renderer) == []
    assert geometry.overlapping(figure, renderer) == []
    shown = {len(ax.patches) for ax in axes}
    assert max(shown) < 60
    for ax in axes:
        assert ax.get_xlabel().endswith(f"{61 - len(ax.patches)} more rows in cells.csv")
        assert any(text.get_text() == "reference" for text in ax.texts)
    assert hidden == page.more(panels, len(axes), "panel")


@pytest.mark.parametrize("where", [page.SCREEN, page.COLUMN], ids=["screen", "pdf"])
def test_long_names_and_captions_stay_within_the_canvas(where):
    name = "a" * 80 + " features.table.policy=presampling order=greedy"
    own = [
        Bar("s", (name, "frontier new"), [("red", 1.0)], 1.0, text="1.00x [0.91, 1.10], unclear"),
        Bar("s", ("b",), status="oom_host"),
    ]
    figure, _, _ = bars.draw(where, [Panel("graph " * 30, "time [s]", own, column="speed-up")])
    where.head(figure, "Title", last=["a setting of some length, " * 20])
    where.legend(figure, [style.interval_key("measured time, with a very long name " * 5)])
    renderer = geometry.drawn(figure)
    assert geometry.outside(figure, renderer) == []
    assert geometry.legends_on_panels(figure, renderer) == []
    assert geometry.overlapping(figure, renderer) == []


def test_pdf_is_a_column_wide_with_its_fonts_as_truetype(tmp_path):
    folder = LARGEST["schedules"]
    for file in folder.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (path,) = plots.draw(tmp_path, ["schedules"], pdf=True)
    assert path.name == "schedules.pdf"
    content = path.read_bytes()
    (box,) = re.findall(rb"/MediaBox \[\s*0 0 ([\d.]+) ([\d.]+)", content)
    assert float(box[0]) / 72 == pytest.approx(3.35, abs=0.01)
    fonts = b"".join(map(inflated, re.findall(rb"stream\r?\n(.*?)endstream", content, re.DOTALL)))
    whole = content + fonts
    assert b"/FontFile2" in whole and b"/Type3" not in whole
    assert path.read_bytes() == plots.draw(tmp_path, ["schedules"], pdf=True)[0].read_bytes()


def inflated(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""
