"""The HTML report as a parser sees it."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from written_runs import cached, claim, epochs, write_run

from gnnbench.core.errors import UsageError
from gnnbench.reproduction import page
from gnnbench.reproduction.claim import PAPERS, choose, papers
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge

VOID = {"meta", "img", "br", "circle", "path"}
HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]


class Reader(HTMLParser):
    """Open tags, texts, ids, links and sources of a page."""

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
        assert tag != "link"
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
    """The report of five claims on one run, and their ids."""
    out = tmp_path / "a folder"
    run = write_run(out / "cache-ratio" / "run-1", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    (run / "figures").mkdir()
    (run / "figures" / "cache.svg").write_text("<svg><text>drawn</text></svg>")
    unmeasured = {"measure": None, "of": None, "number": None, "tolerance": None, "runs": None}
    claims = [
        claim(),
        claim(id="gnnlab/fig0.a2", number=0.3, says="less than <b>a third</b> & more"),
        claim(id="gnnlab/fig0.a3", rows={"dataset": "twitter"}),
        claim(id="gnnlab/abs3", of_graph=True),
        claim(
            id="fastgl/fig0.a1", **unmeasured, verdict="ill-posed", because="it contradicts itself"
        ),
    ]
    path = out / page.NAME
    page.write(path, "smoke", judge(claims, open_runs([out])))
    return path, [c.id for c in claims]


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def flat(reader):
    """The text of a page with single spaces."""
    return " ".join(" ".join(reader.texts).split())


def test_report_has_every_claim_with_its_verdict_and_numbers(written):
    path, claims = written
    reader = read(path.read_text(encoding="utf-8"))
    text = flat(reader)
    for ident in claims:
        assert ident in text and ident.replace("/", "-") in reader.ids
    for part in (
        "holds", "refuted", "not measured", "holds on a twin", "ill-posed", "it contradicts itself",
        "50 [47.52, 52.48] %", "2 cores of a <processor>", "paper 30 % , measured 50 [",
        "gnnbench run cache-ratio --profile laptop", "less than <b>a third</b> & more",
        "Profile smoke", "2026-01-01", "1 number, allowed 45 to 55 %",
    ):  # fmt: skip
        assert part in text, part
    assert not {"script", "i"} & set(reader.tags)
    assert len(reader.ids) == len(set(reader.ids))


def test_report_loads_nothing(written):
    path, _ = written
    text = path.read_text(encoding="utf-8")
    (source,) = read(text).loaded
    assert source.startswith("data:image/svg+xml;base64,")
    assert "url(" not in text and "@import" not in text and "http" not in text


def test_figures_and_evidence_are_collapsed_and_figures_lazy(written):
    text = written[0].read_text(encoding="utf-8")
    assert "<details open" not in text
    assert re.search(
        r"<details><summary>1 figure</summary>\s*<figure[^>]*><img loading=.lazy", text
    )
    assert len(re.findall(r"<details><summary>1 number", text)) == 3


def test_card_has_the_headline_claims_of_the_paper(written):
    text = written[0].read_text(encoding="utf-8")
    cards = re.findall(r'<section class="card".*?</section>', text, re.DOTALL)
    links = [re.findall(r'href="#([a-z0-9-]+)">it hits', card) for card in cards]
    assert links == [["gnnlab-abs3"], []]
    assert "twin of papers100m" in cards[0] and "needs" not in cards[0]
    assert [re.findall(r"flex-grow:(\d)", card) for card in cards] == [["1"] * 4, ["1"]]
    counts = "4 claims: 1 holds, 1 holds on a twin, 1 refuted, 1 not measured"
    assert f'aria-label="{counts}"' in cards[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_paper_has_three_to_five_headline_claims_and_titles_of_its_entries(paper):
    known = papers()[paper]
    ids = {c.id for c in known.claim}
    assert known.name and 3 <= len(known.headlines) <= 5
    assert {f"{paper}/{headline}" for headline in known.headlines} <= ids
    assert {f"{paper}/{entry}" for entry in known.entries} == {c.entry for c in known.claim}


@pytest.mark.parametrize(
    ("drawn", "style"),
    [
        ('<svg height="200pt" width="1700.5pt" xmlns="x"><path/></svg>', "min-width:1020pt"),
        ("<svg><path/></svg>", None),
    ],
)
def test_wide_figure_keeps_a_readable_width(drawn, style, tmp_path):
    run = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    (run / "figures").mkdir()
    (run / "figures" / "cache.svg").write_text(drawn)
    reader = read(page.html(tmp_path, "smoke", judge([claim()], open_runs([run]))))
    assert reader.styles == [style]


def test_values_are_escaped_and_printable(tmp_path):
    run = write_run(tmp_path / "a run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    says = "<script>alert(1)</script> \x1b[31m \u202e"
    text = page.html(tmp_path, "<i>", judge([claim(says=says)], open_runs([run])))
    reader = read(text)
    assert not {"script", "i"} & set(reader.tags)
    assert "<script>alert(1)</script> \\x1b[31m \\u202e" in " ".join(reader.texts)
    assert "\x1b" not in text and "\u202e" not in text


def test_links_lead_to_claims_runs_machines_and_folders(written):
    path, _ = written
    reader = read(path.read_text(encoding="utf-8"))
    inside = {link[1:] for link in reader.links if link.startswith("#")}
    folders = [link for link in reader.links if not link.startswith("#")]
    assert {"gnnlab-abs3", "run-1", "machine-1", "gnnlab-fig0-entry"} <= inside <= set(reader.ids)
    assert folders and all((path.parent / unquote(link)).is_dir() for link in folders)


def test_folder_in_place_of_the_file_is_an_error(tmp_path):
    with pytest.raises(UsageError, match=r"is a folder; name a file, such as '.*index\.html'"):
        page.write(tmp_path, "smoke", judge([claim()], []))


def positions(text):
    """Of each drawing: the claimed range, the paper's ticks, the interval and the dot."""
    drawings = re.findall(r'<svg class="([a-z-]+)".*?</svg>', text)
    ranges = re.findall(r'class="range" d="M([\d.]+) 1H([\d.]+)', text)
    ticks = re.findall(r'class="tick" d="([^"]+)"', text)
    intervals = re.findall(
        r'class="interval" d="M([\d.]+) 7H([\d.]+)"/><circle cx="([\d.]+)"', text
    )
    return drawings, ranges, ticks, [tuple(map(float, i)) for i in intervals]


def test_evidence_has_the_papers_number_next_to_the_measured_one(tmp_path):
    cells = [cached("a", "degree", 0.1), cached("b", "degree", 0.1, dataset="twitter~twin")]
    low = [{"cache": n, "host": 100 - n} for n in (20, 21, 19)]
    run = write_run(tmp_path / "run", cells, [*epochs("a", *HALF), *epochs("b", *low)])
    bound = {"number": None, "tolerance": None, "kind": "bound", "least": 0.1, "unit": "%"}
    values = {"papers100m": 0.46, "twitter": 0.31, "reddit": 0.9}
    text = page.html(
        tmp_path, "", judge([claim(**bound, values=values, cells=3)], open_runs([run]))
    )
    rows = re.findall(r"<tr>(<td>.*?)</tr>", text, re.DOTALL)
    cells_of = [
        [" ".join(re.sub("<[^>]*>", "", c).split()) for c in r.split("</td>")] for r in rows
    ]
    assert [row[:3] for row in cells_of] == [
        ["tsota, papers100m~twin@0.1", "46 %", "50 [47.52, 52.48] %"],
        ["tsota, twitter~twin", "31 %", "20 [17.52, 22.48] %"],
        ["reddit", "90 %", "not measured"],
    ]
    verdicts, ranges, ticks, intervals = positions(text)
    assert verdicts == ["holds", "holds"] and len(ranges) == len(ticks) == 2
    (first, second) = intervals
    assert first[0] < first[2] < first[1] and second[1] < first[0]
    tick = float(re.match(r"M([\d.]+) ", ticks[1])[1])
    assert second[1] < tick < first[0]  # the paper's 31 % is between 20 % and 50 %


def test_drawing_shows_the_range_the_number_and_the_interval(tmp_path):
    run = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", *HALF))
    text = page.html(tmp_path, "", judge([claim(number=0.3)], open_runs([run])))
    verdicts, ((low, high),), (tick,), ((left, right, middle),) = positions(text)
    assert verdicts == ["refuted"]
    assert float(low) < float(re.match(r"M([\d.]+) ", tick)[1]) < float(high) < left
    assert left < middle < right


def test_number_without_interval_has_no_drawing(tmp_path):
    run = write_run(tmp_path / "run", [cached("a", "degree", 0.1)], epochs("a", HALF[0]))
    text = page.html(tmp_path, "", judge([claim()], open_runs([run])))
    assert "a single epoch or process has no interval" in text and "<svg" not in text


def luminance(colour):
    """Relative luminance by WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    lighter, darker = sorted(map(luminance, (a, b)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_a_contrast_of_at_least_4_5(scheme):
    style = Path(page.FOLDER / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert len(blocks) == 2
    colours = dict(re.findall(r"--([a-z-]+): (#\w{6});", blocks[scheme]))
    verdicts = [
        "holds", "holds-on-a-twin", "holds-in-shape", "holds-only-improved", "unclear",
        "not-reproduced", "refuted", "not-checkable-here", "ill-posed", "not-measured",
    ]  # fmt: skip
    for verdict in verdicts:
        assert contrast(colours["on"], colours[verdict]) >= 4.5, verdict
    for verdict in verdicts[:5]:  # as text of a number's own verdict
        assert contrast(colours["page"], colours[verdict]) >= 4.5, verdict
    for text in ("text", "quiet", "link"):
        for ground in ("page", "panel"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_claims_are_chosen_by_paper():
    report = page.html(Path(), "", judge(choose(["fastsample"]), []))
    assert "FastSample" in report and "FastGL" not in report
