"""The shipped claims: each can be judged or has a reason why it cannot."""

import re
import warnings
from functools import cache

import pytest
from written_runs import claim

from gnnbench.analysis.labels import parse_label
from gnnbench.config import experiment
from gnnbench.core.errors import UsageError
from gnnbench.reproduction.claim import PAPERS, choose, load, papers, sizes
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.multi_machine import MULTI_MACHINE_MEASURES
from gnnbench.reproduction.report import ROOT
from gnnbench.schema import CELLS

profiles_of = cache(lambda name: set(experiment.load(name).profiles))
EVERY = [c for p in papers().values() for c in p.claim]
MEASURED = [c for c in EVERY if c.measure and c.measure not in {*FORMULAS, *MULTI_MACHINE_MEASURES}]


def test_every_paper_has_claims_with_unique_ids():
    assert tuple(papers()) == PAPERS
    assert len({c.id for c in EVERY}) == len(EVERY) > 150
    assert {c.paper for c in EVERY} == set(PAPERS)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_assertion_of_a_paper_has_a_claim_or_an_exemption(paper):
    """``assertions`` lists what a paper asserts. An assertion may have several claims
    (``table4.a1-mag``), and a claim may be about a contradiction within a paper."""
    listed = papers()[paper]
    claimed = {c.id.removeprefix(f"{paper}/") for c in listed.claim}
    claimed |= {re.sub(r"((?:^|\.)a(?:bs)?\d+)-.*", r"\1", ident) for ident in claimed}
    assert len(set(listed.assertions)) == len(listed.assertions) >= 20
    assert [a for a in listed.assertions if a not in claimed and a not in listed.exempt] == []
    assert [a for a in listed.exempt if a in claimed or a not in listed.assertions] == []
    named = re.findall(r"(?:tests|native|gnnbench)/\S+\.\w+", " ".join(listed.exempt.values()))
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("claim", MEASURED, ids=lambda c: c.id)
def test_runs_columns_and_labels_of_a_claim_exist(claim):
    for run in claim.runs:
        name, _, profile = run.partition(" ")
        assert profile in profiles_of(name), run
    columns = {c.name for c in CELLS}
    for point in claim.claim_points():
        assert set(point.rows) <= columns
        labels = [parse_label(label)[0] for label in (point.of, point.versus) if label]
        system, dot, _ = point.along.partition(".")
        assert not dot or system in labels


@pytest.mark.parametrize("size", ["smoke", "laptop", "gpu", "gpus", "paper"])
def test_every_run_of_a_profile_serves_a_claim(size):
    served = {run for c in EVERY for run in c.runs}
    assert set(sizes()) == {"smoke", "laptop", "gpu", "gpus", "paper"}
    assert len(sizes()[size]) == len(set(sizes()[size]))
    assert set(sizes()[size]) <= served


def test_every_measured_claim_has_a_planned_run():
    planned = {run for runs in sizes().values() for run in runs}
    assert [c.id for c in MEASURED if not planned & set(c.runs)] == []


def test_claims_with_a_cause_belong_to_papers_with_rates():
    assert all(papers()[c.paper].rates for c in EVERY if c.cause)


def test_claims_are_chosen_by_paper_figure_or_id():
    assert {c.paper for c in choose(["gnnlab"])} == {"gnnlab"}
    assert {c.entry for c in choose(["fastgl/table4"])} == {"fastgl/table4"}
    assert [c.id for c in choose(["fastgl/eq3-4.a1"])] == ["fastgl/eq3-4.a1"]
    assert choose() == EVERY
    with pytest.raises(UsageError, match="unknown claim 'fastgl/tabel4'; did you mean"):
        choose(["fastgl/tabel4"])


def test_expected_bounds_of_each_kind_of_claim():
    assert claim().claim_points()[0].expected("value") == pytest.approx((0.45, 0.55))
    upto = claim(kind="upto", number=2.0, tolerance=None)
    assert upto.claim_points()[0].expected("upto") == (1.9, float("inf"))
    ends = claim(kind="range", number=(0.2, 0.4), tolerance=None)
    assert ends.claim_points()[0].expected("range") == (0.2, 0.4)
    assert claim(number=None, most=0.3).claim_points()[0].expected("bound") == (-float("inf"), 0.3)


def test_points_inherit_fields_of_their_claim():
    both = claim(
        rows={"dataset": "x", "batch_size": 8}, points=[{}, {"rows": {"dataset": "y"}, "number": 1}]
    )
    first, second = both.claim_points()
    assert first.rows == {"dataset": "x", "batch_size": 8} and first.number == 0.5
    assert second.rows == {"dataset": "y", "batch_size": 8} and second.number == 1
    assert first.tolerance == second.tolerance == 0.05


GOOD = """
title = "T"
[[claim]]
id = "mine/fig1.a1"
source = "Fig. 1"
says = "so"
measure = "hit_ratio"
of = "tsota"
number = 0.5
runs = ["cache-ratio smoke"]
"""


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"hit_ratio"', '"hit_ration"', "mine/fig1.a1.*nknown measure.*'hit_ratio'"),
        ('of = "tsota"\n', "", "a measure needs 'of'"),
        ("number = 0.5\n", "", "the expected value is missing"),
        ('runs = ["cache-ratio smoke"]', "", "needs 'runs'"),
        ('says = "so"', 'says = "so"\nverdict = "ill-posed"', "belong together"),
        ('says = "so"', 'says = "so"\nlacks = "it"', "needs exactly one of"),
        ('says = "so"', 'says = "so"\nversus = "dgl"', "'by' requires"),
        ('"hit_ratio"', '"time"', "times are judged as ratios"),
        ("number = 0.5", "numer = 0.5", "numer: "),
        ("mine/fig1", "other/fig1", "of another paper"),
        ("[[claim]]", "[[claim]", "is not TOML"),
    ],
)
def test_invalid_claim_is_a_usage_error(tmp_path, old, new, match):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert [c.id for c in load(path).claim] == ["mine/fig1.a1"]
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(UsageError, match=match) as raised:
        load(path)
    assert "\n" not in str(raised.value)


def test_duplicate_id_is_an_error(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + GOOD.replace('title = "T"\n', ""))
    with pytest.raises(UsageError, match=r"'mine/fig1\.a1' twice"):
        load(path)


def test_deprecated_keys_warn_once_and_are_read_as_the_new_ones(tmp_path):
    extra = 'by = "ratio"\nbeside = "dgl"\nbeside_rows = { dataset = "mag" }\n'
    first = GOOD + extra
    second = first.replace('title = "T"\n', "").replace("a1", "a2")
    path = tmp_path / "mine.toml"
    path.write_text(first + second)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        claims = load(path).claim
    assert [(w.category, str(w.message)) for w in caught] == [
        (DeprecationWarning, "'mine.toml': the key 'beside' is deprecated; write 'versus'"),
        (
            DeprecationWarning,
            "'mine.toml': the key 'beside_rows' is deprecated; write 'versus_rows'",
        ),
    ]
    assert {(c.versus, str(c.versus_rows)) for c in claims} == {("dgl", "{'dataset': 'mag'}")}


def test_deprecated_key_of_a_point_warns(tmp_path):
    path = tmp_path / "mine.toml"
    points = '{ by = "ratio", beside = "dgl" }, { by = "ratio", versus = "pyg" }'
    path.write_text(f"{GOOD}points = [{points}]\n")
    with pytest.warns(DeprecationWarning, match="'beside' is deprecated; write 'versus'"):
        (claim,) = load(path).claim
    assert [p.versus for p in claim.claim_points()] == ["dgl", "pyg"]


def test_current_keys_do_not_warn(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + 'by = "ratio"\nversus = "dgl"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path)
