"""The HTML report in a real browser: at three widths, in both colour schemes, and printed."""

import browser
import pytest
from written_runs import cached, claim, epochs, write_run

from gnnbench.reproduction import page
from gnnbench.reproduction.claim import choose
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.reproduction.report import ROOT

PROGRAM = browser.find()
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason=f"no browser ({', '.join(browser.BROWSERS)}) is installed"
)
WIDTHS = (360, 768, 1440)
PAPER_WIDTH = 711  # of A4 less the margins of the page, in CSS pixels
HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
DRAWN = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="1700pt" height="200pt" viewBox="0 0 1700 200">'
    '<rect width="1700" height="200" fill="red"/></svg>'
)
# Elements beyond the right edge, or whose content is cut off. Content of a box that scrolls is
# neither; nothing scrolls in print.
OVERFLOW = """(() => {
  const root = document.documentElement, faults = [];
  const print = matchMedia('print').matches;
  const scrolls = e => !print && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  if (root.scrollWidth > root.clientWidth) faults.push('document ' + root.scrollWidth);
  for (const e of document.body.querySelectorAll('*')) {
    if (!e.checkVisibility({contentVisibilityAuto: true})) continue;
    let inside = false;
    for (let a = e.parentElement; a; a = a.parentElement) inside ||= scrolls(a);
    const box = e.getBoundingClientRect();
    if (!inside && box.right > root.clientWidth + 0.5) faults.push(e.tagName + ' ' + box.right);
    const style = getComputedStyle(e);
    const cut = ['hidden', 'clip'].includes(style.overflowX) && e.tagName != 'svg';
    if (cut && e.scrollWidth > e.clientWidth) faults.push(e.tagName + ' is cut off');
  }
  return faults.slice(0, 9);
})()"""
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"
HIDDEN = """[...document.querySelectorAll('main tbody tr, main img')]
  .filter(e => !e.checkVisibility({contentVisibilityAuto: true})).length"""
NOT_LOADED = "[...document.images].filter(e => !e.naturalWidth).length"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A report with long words and a wide figure."""
    out = tmp_path_factory.mktemp("small")
    run = write_run(out / ("run" * 30), [cached("a", "degree", 0.1)], epochs("a", *HALF))
    (run / "figures").mkdir()
    (run / "figures" / "wide.svg").write_text(DRAWN)
    claims = [
        claim(note="n" * 300),
        claim(id="gnnlab/abs3", says="w" * 200, number=0.3),
        claim(id="fastgl/abs1", rows={"dataset": "twitter"}, source="s" * 100),
    ]
    path = out / page.NAME
    page.write(path, "smoke", judge(claims, open_runs([out])))
    return path


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The report of the committed results."""
    path = tmp_path_factory.mktemp("reference") / page.NAME
    page.write(path, "", judge(choose(), open_runs([ROOT / "results" / "reference"])))
    return path


@pytest.fixture(params=["small", "reference"])
def report(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("width", WIDTHS)
def test_report_fits_the_width(chromium, report, width):
    chromium.open(report)
    chromium.show(width)
    assert chromium.evaluate("innerWidth") == width
    assert chromium.evaluate(OVERFLOW) == []
    chromium.evaluate(OPEN_ALL)
    assert chromium.evaluate(OVERFLOW) == []
    assert chromium.evaluate(HIDDEN) == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_contents_stay_visible_and_do_not_cover_the_target(chromium, reference, width):
    chromium.open(reference)
    chromium.show(width)
    chromium.evaluate("document.getElementById('gnnlab').scrollIntoView()")
    assert chromium.evaluate("scrollY") > 5000
    assert chromium.evaluate("document.querySelector('nav').getBoundingClientRect().top") == 0
    covered = """(() => {
      const box = document.getElementById('gnnlab').getBoundingClientRect();
      return document.elementFromPoint(box.left + 2, box.top + 2).closest('nav') !== null;
    })()"""
    assert not chromium.evaluate(covered)


def test_evidence_is_collapsed_on_the_screen(chromium, small):
    chromium.open(small)
    chromium.show(1440)
    assert chromium.evaluate(HIDDEN) == 3  # two numbers and a figure


def test_nothing_is_hidden_or_cut_off_in_print(chromium, report):
    chromium.open(report)
    chromium.show(PAPER_WIDTH, "print")
    assert chromium.evaluate(HIDDEN) == 0
    assert chromium.evaluate(OVERFLOW) == []


def test_report_of_the_committed_results_is_small_and_prints_its_evidence(chromium, reference):
    assert reference.stat().st_size < 2e6
    chromium.open(reference)
    pages = chromium.printed_pages()
    collapse = "details::details-content { height: 0 !important; overflow: hidden }"
    chromium.evaluate(f"document.querySelector('style').append('{collapse}')")
    assert chromium.printed_pages() + 10 < pages <= 60


def test_figures_are_loaded_on_demand_and_for_print(reference, tmp_path):
    with browser.Browser(PROGRAM, tmp_path) as fresh:  # without decoded images
        fresh.open(reference)
        fresh.show(1440)
        assert fresh.evaluate(NOT_LOADED) == fresh.evaluate("document.images.length") > 0
        fresh.printed_pages()
        assert fresh.evaluate(NOT_LOADED) == 0


def test_colours_follow_the_scheme(chromium, small):
    chromium.open(small)
    grounds = []
    for dark in (False, True):
        chromium.show(1440, dark=dark)
        grounds.append(chromium.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(20, 23, 26)"]


@pytest.mark.parametrize("media", ["screen", "print"])
def test_overflow_is_recognized(chromium, small, media):
    """The check reports a box that is too wide, and text that is cut off."""
    chromium.open(small)
    chromium.show(PAPER_WIDTH, media)
    add = "document.querySelector('main').insertAdjacentHTML('beforeend', '<p style=\"{}\">{}</p>')"
    chromium.evaluate(add.format("width:2000px", "wide"))
    faults = chromium.evaluate(OVERFLOW)
    assert any(f.startswith("document") for f in faults) and any("P 20" in f for f in faults)
    chromium.evaluate("document.querySelector('main > p').remove()")
    assert chromium.evaluate(OVERFLOW) == []
    chromium.evaluate(add.format("width:60px;overflow:hidden;white-space:nowrap", "long" * 20))
    assert chromium.evaluate(OVERFLOW) == ["P is cut off"]
