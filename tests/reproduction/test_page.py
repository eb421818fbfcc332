"""The page as a reader of HTML has it: whole, balanced, and asking nobody for anything."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from written_runs import cached, claim, epochs, write_run

from gnnbench.reproduction import bars, page
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge

VOID = {"meta", "img", "br", "circle", "rect", "line"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "firefox")
HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]


class Reader(HTMLParser):
    """Tags that are open, texts, and all that a browser would load or lead to."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.loaded, self.links, self.tags = [], [], [], [], []
        self.ids, self.styles = [], []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.tags.append(tag)
        self.loaded += [known[k] for k in ("src", "data", "srcset", "poster") if k in known]
        self.links += [known["href"]] if tag == "a" else []
        self.ids += [known["id"]] if "id" in known else []
        self.styles += [known.get("style")] if tag == "img" else []
        assert tag != "link" or "href" not in known
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def written(tmp_path):
    """The page of five claims over one run, and its folder."""
    out = tmp_path / "a folder"
    run = write_run(out / "cache-ratio" / "run-1", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    (run / "figures").mkdir()
    (run / "figures" / "cache.svg").write_text("<svg><text>drawn</text></svg>")
    why = {"measure": None, "of": None, "number": None, "tolerance": None, "runs": None}
    claims = [
        claim(),
        claim(id="gnnlab/fig0.a2", number=0.3, says="less than <b>a third</b> & more"),
        claim(id="gnnlab/fig0.a3", rows={"dataset": "twitter"}),
        claim(id="gnnlab/fig0.a4", of_graph=True),
        claim(id="fastgl/fig0.a1", **why, verdict="ill-posed", because="it contradicts itself"),
    ]
    path = page.write(out, "smoke", judge(claims, open_runs([out])))
    return path, [c.id for c in claims]


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_has_every_claim_with_its_verdict_and_numbers(written):
    path, claims = written
    reader = read(path)
    text = " ".join(reader.texts)
    for ident in claims:
        assert ident in text and ident.replace("/", "-") in reader.ids
    for told in (
        "holds", "refuted", "not measured", "holds in shape", "ill-posed", "it contradicts itself",
        "50 % [47.52 %, 52.48 %]", "2 cores of a <processor>", "paper 30 %; measured 50 %",
        "gnnbench run cache-ratio --profile laptop", "less than <b>a third</b> & more",
    ):  # fmt: skip
        assert told in text, told
    assert "script" not in reader.tags and "b" not in reader.tags
    assert len(reader.ids) == len(set(reader.ids))


def test_the_page_is_whole_in_itself(written):
    path, _ = written
    reader = read(path)
    assert len(reader.loaded) == 1
    assert all(source.startswith("data:image/") for source in reader.loaded)
    assert "url(" not in path.read_text() and "@import" not in path.read_text()


@pytest.mark.parametrize(
    ("drawn", "style"),
    [
        ('<svg height="200pt" width="1700.5pt" xmlns="x"><path/></svg>', "min-width: 1020pt"),
        ("<svg><path/></svg>", None),
    ],
)
def test_a_wide_figure_keeps_a_width_at_which_it_can_be_read(drawn, style, tmp_path):
    run = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    (run / "figures").mkdir()
    (run / "figures" / "cache.svg").write_text(drawn)
    reader = read(page.write(tmp_path, "smoke", judge([claim()], open_runs([run]))))
    assert reader.styles == [style]


def test_values_are_escaped_and_shown_in_one_line(tmp_path):
    says = "<script>alert(1)</script> \x1b[31m \u202e"
    path = page.write(tmp_path, "<i>", judge([claim(says=says)], open_runs([cached_run(tmp_path)])))
    reader = read(path)
    assert "script" not in reader.tags and "i" not in reader.tags
    assert "<script>alert(1)</script> \\x1b[31m \\u202e" in " ".join(reader.texts)
    assert "\x1b" not in path.read_text() and "\u202e" not in path.read_text()


def cached_run(folder):
    return write_run(folder / "a run", [cached("a", "degree", 0.1)], epochs("a", *HALF))


def test_links_lead_to_rows_and_to_claims(written):
    path, _ = written
    reader = read(path)
    inside = [link for link in reader.links if link.startswith("#")]
    rows = [link for link in reader.links if not link.startswith("#")]
    assert inside and {link[1:] for link in inside} <= set(reader.ids)
    assert rows and all((path.parent / unquote(link)).is_file() for link in rows)


def test_what_was_measured_is_drawn_over_what_is_allowed(written):
    path, _ = written
    reader = read(path)
    # Three claims have a number: an interval, its middle, and a band each; their figure has the
    # paper's bar and the measured one of each, and five colours explained.
    assert [reader.tags.count(t) for t in ("svg", "line", "circle", "rect")] == [4, 6, 3, 14]


def test_a_figure_has_the_paper_s_numbers_beside_those_measured(tmp_path):
    cells = [cached("a", "degree", 0.1), cached("b", "degree", 0.1, dataset="twitter~twin")]
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    run = write_run(tmp_path / "run", cells, [*epochs("a", *HALF), *epochs("b", *low)])
    each = {"number": None, "tolerance": None, "kind": "bound", "least": 0.1, "unit": "%"}
    values = {"papers100m": 0.46, "twitter": 0.31, "reddit": 0.9}
    figure = judge([claim(**each, values=values, cells=3)], open_runs([run]))
    text = bars.svg(figure)
    reader = Reader()
    reader.feed(text)
    told = [t for t in reader.texts if t.endswith("%") or "twin" in t or t.startswith("a1")]
    assert told == [
        "a1: papers100m", "46 %", "50 % [47.52 %, 52.48 %] papers100m~twin@0.1",
        "a1: twitter", "31 %", "20 % [17.52 %, 22.48 %] twitter~twin",
        "a1: reddit", "90 %",
    ]  # fmt: skip
    boxes = re.findall(
        r'<rect x="([0-9.]+)" y="\d+" width="([0-9.]+)" height="10" fill="(#\w+)"', text
    )
    widths = [float(width) for _, width, colour in boxes[5:]]
    assert widths == pytest.approx(
        [w / 0.9 * widths[-1] for w in (0.46, 0.5, 0.31, 0.2, 0.9)], abs=0.2
    )
    asked = claim(of="tsota features.policy=optimal")
    assert bars.svg(judge([asked], open_runs([run]))) == ""  # nothing was measured
    assert bars.svg(judge([claim(**each)], open_runs([run]))) == ""  # nothing is printed


def test_a_browser_shows_the_page(written, tmp_path):
    path, claims = written
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no headless browser ({', '.join(BROWSERS)}) is on the PATH")
    shot = tmp_path / "page.png"
    if "firefox" in browser:
        words = ["--headless", f"--screenshot={shot}", path.as_uri()]
    else:
        words = [
            "--headless", "--disable-gpu", "--no-sandbox", f"--user-data-dir={tmp_path / 'user'}",
            f"--screenshot={shot}", path.as_uri(),
        ]  # fmt: skip
    subprocess.run([browser, *words], check=True, timeout=120, capture_output=True)
    assert shot.stat().st_size > 5000
    if "firefox" not in browser:
        dumped = subprocess.run(
            [browser, *words[:4], "--dump-dom", path.as_uri()],
            check=True, timeout=120, capture_output=True, text=True,
        ).stdout  # fmt: skip
        assert all(ident in dumped for ident in claims)
