"""Contradictions that do not refute a claim, and what stays unclear, from rows written by hand."""

import json

import pytest
from written_runs import cached, claim, epochs, timed, verdict_of, write_run

from gnnbench.reproduction import page, text
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.reproduction.report import DECIDED

HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
WIDE = [{"cache": n, "host": 100 - n} for n in (40, 60)]
OF_GRAPH = claim(of_graph=True, number=0.3)
HARDWARE = claim(number=0.9, port="S")
TWIN = "It was measured on a twin of papers100m, so it does not refute the claim"


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (OF_GRAPH, "It was measured on a twin of papers100m"),
        (HARDWARE, "It depends on the hardware, which is not the paper's"),
        (claim(number=0.3, faster_rival=True), "The rival here is faster than the paper's"),
    ],
    ids=["twin", "hardware", "rival"],
)
def test_interval_outside_with_a_doubt_is_not_reproduced(one, statement, why):
    judged = verdict_of(statement, one(HALF))
    assert judged.verdict == "not reproduced"
    assert judged.reason.endswith(
        f"outside the claimed range. {why}, so it does not refute the claim"
    )
    assert [f.verdict for f in judged.findings] == ["refuted"]


@pytest.mark.parametrize("statement", [OF_GRAPH, HARDWARE])
def test_interval_across_a_bound_stays_unclear(one, statement):
    near = statement.model_copy(update={"number": 0.5})
    judged = verdict_of(near, one(WIDE))
    assert judged.verdict == "unclear" and "refute" not in judged.reason


@pytest.mark.parametrize("statement", [OF_GRAPH, HARDWARE])
def test_single_process_stays_unclear(one, statement):
    assert verdict_of(statement, one(HALF[:1])).verdict == "unclear"


def test_unreliable_time_stays_unclear(two):
    order = timed(kind="order", number=None, least=1.0, faster_rival=True)
    assert verdict_of(order, two(0.8, 0.7, 0.9)).verdict == "not reproduced"
    busy = two(0.8, 0.7, 0.9, name="busy", doubtful="other programs used 1.0 cores meanwhile")
    assert verdict_of(order, busy).verdict == "unclear"
    assert verdict_of(order, two(0.8, 0.7, 0.9, name="few", pairs=2)).verdict == "unclear"


@pytest.mark.parametrize("kind", ["value", "order", "upto", "mean"])
def test_missing_point_leaves_a_doubted_contradiction_unclear(one, kind):
    points = [{}, {"of": "tsota features.policy=random"}]
    bounds = (
        {"number": None, "tolerance": None, "least": 0.9} if kind == "order" else {"number": 0.9}
    )
    statement = claim(of_graph=True, kind=kind, points=points, **bounds)
    folder = one(HALF)
    judged = verdict_of(statement, folder)
    assert judged.verdict == "unclear"
    assert judged.reason.startswith(
        "1 of 2 points measured: run 'gnnbench run cache-ratio --profile laptop'; "
    )
    assert judged.reason.count("points measured") == 1
    whole = statement.model_copy(update={"points": []})
    assert verdict_of(whole, folder).verdict == "not reproduced"


def test_contradiction_without_a_doubt_needs_no_other_point(one):
    points = [{}, {"of": "tsota features.policy=random"}]
    assert verdict_of(claim(number=0.9, points=points), one(HALF)).verdict == "refuted"


def test_setting_that_is_not_the_papers_stays_unclear(one):
    statement = OF_GRAPH.model_copy(update={"as_printed": {"batch_size": 1024}})
    judged = verdict_of(statement, one(HALF))
    assert judged.verdict == "unclear" and "batch_size is 8000, the paper has 1024" in judged.reason


# Hits of the variants of a claim of 90 %: 50 % contradict it, of a size or on a twin without
# refuting it; 90 % support it, and 80 % to 100 % decide nothing.
GOOD = [{"cache": n, "host": 100 - n} for n in (90, 91, 89)]
OPEN = [{"cache": n, "host": 100 - n} for n in (80, 100)]


@pytest.mark.parametrize(
    ("published", "improved", "verdict"),
    [
        ("twin", ("twin", GOOD), "holds only improved"),
        ("real", ("twin", GOOD), "holds only improved"),
        ("real", ("real", HALF), "refuted"),
        ("real", ("twin", HALF), "not reproduced"),
        ("twin", ("real", HALF), "not reproduced"),
        ("twin", ("twin", HALF), "not reproduced"),
        ("real", ("real", OPEN), "unclear"),
        ("twin", ("real", OPEN), "not reproduced"),
        ("real", None, "unclear"),
        ("twin", None, "not reproduced"),
    ],
)
def test_improved_variant_counts_where_the_published_one_is_contradicted(
    published, improved, verdict, tmp_path
):
    graphs = {"twin": "papers100m~twin@0.1", "real": "papers100m"}
    statement = claim(of_graph=True, number=0.9, improved={"of": "tsota features.policy=random"})
    cells = [cached("a", "degree", 0.1, dataset=graphs[published])]
    served = epochs("a", *HALF)
    if improved is not None:
        graph, hits = improved
        cells.append(cached("b", "random", 0.1, dataset=graphs[graph]))
        served += epochs("b", *hits)
    judged = verdict_of(statement, write_run(tmp_path / "run", cells, served))
    assert judged.verdict == verdict
    assert len(judged.improved) == (improved is not None)
    assert judged.reason.count(TWIN) == (verdict == "not reproduced" or published == "twin")
    if verdict == "not reproduced" and improved is None:
        assert judged.reason.endswith(
            f"{TWIN}. The improved variant is not measured: run 'gnnbench run cache-ratio --profile"
            " laptop'"
        )
    if verdict == "not reproduced" and improved and improved[1] is OPEN:
        assert f"{TWIN}. The improved variant is unclear: " in judged.reason


def test_page_counts_and_tables_have_the_verdict(one, tmp_path):
    judged = judge([OF_GRAPH], open_runs([one(HALF)]))
    assert text.count(judged) == "1 claim: 1 not reproduced"
    assert json.loads(json.dumps(text.to_json(judged)))[0]["verdict"] == "not reproduced"
    html = page.html(tmp_path, "", judged)
    assert '<article class="not-reproduced"' in html and "badge not-reproduced" in html
    style = (page.FOLDER / "page.css").read_text(encoding="utf-8")
    assert ".not-reproduced { --own: var(--not-reproduced); }" in style
    assert "not reproduced" in DECIDED
