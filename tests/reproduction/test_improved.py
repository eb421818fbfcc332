"""A claim is judged on the published variant, then on the improved one."""

import json

import pytest
from written_runs import cached, cell, timed, verdict_of, write_run

from gnnbench.core.errors import UsageError
from gnnbench.reproduction import page, text
from gnnbench.reproduction.claim import load
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge

PUBLISHED, IMPROVED = (0.8, 0.7, 0.9), (2.5, 2.2, 2.8)  # outside of and within 2 to 3


def policy(name):
    return f"tsota features.policy={name}"


CLAIM = timed(versus=policy("optimal"), improved={"versus": policy("presc#1")})


def two_variants(folder, published=None, improved=None, pairs=5, **more):
    """A run in which degree is compared with a published and an improved policy."""
    cells = [cached("ref", "degree", 0.1, reference_id="ref", work_class="")]
    for name, ratio in (("optimal", published), ("presc#1", improved)):
        if ratio is not None:
            value, low, high = ratio
            result = {"ratio": value, "ratio_ci_low": low, "ratio_ci_high": high, "pairs": pairs}
            cells.append(cached(name, name, 0.1, **{**result, **more}))
    return write_run(folder, cells)


@pytest.mark.parametrize(
    ("published", "improved", "verdict"),
    [
        ((2.5, 2.2, 2.8), None, "holds"),
        ((2.5, 2.2, 2.8), (0.8, 0.7, 0.9), "holds"),
        ((1.5, 1.4, 1.6), (2.5, 2.2, 2.8), "holds in shape"),
        ((1.0, 0.9, 1.1), (2.5, 2.2, 2.8), "unclear"),
        ((0.8, 0.7, 0.9), (2.5, 2.2, 2.8), "holds only improved"),
        ((0.8, 0.7, 0.9), (1.5, 1.4, 1.6), "holds only improved"),
        ((0.8, 0.7, 0.9), (0.7, 0.6, 0.8), "refuted"),
        ((0.8, 0.7, 0.9), (1.0, 0.9, 1.1), "unclear"),
        ((0.8, 0.7, 0.9), None, "unclear"),
        (None, (2.5, 2.2, 2.8), "not measured"),
    ],
)
def test_improved_variant_counts_only_where_the_published_one_fails(
    published, improved, verdict, tmp_path
):
    judged = verdict_of(CLAIM, two_variants(tmp_path / "run", published, improved))
    assert judged.verdict == verdict
    failed = published == PUBLISHED
    assert bool(judged.improved) == (failed and improved is not None)
    assert ("published variant" in judged.reason) == failed


def test_reason_states_both_numbers(tmp_path):
    both = verdict_of(CLAIM, two_variants(tmp_path / "both", PUBLISHED, (0.7, 0.6, 0.8)))
    assert both.reason.startswith(
        "published variant 0.8x [0.7x, 0.9x], improved variant 0.7x [0.6x, 0.8x]; "
    )
    alone = verdict_of(CLAIM, two_variants(tmp_path / "alone", PUBLISHED))
    assert alone.reason.startswith(
        "the published variant fails (0.8x [0.7x, 0.9x]); the improved one is not measured: run"
    )
    wide = verdict_of(CLAIM, two_variants(tmp_path / "wide", PUBLISHED, (1.0, 0.9, 1.1)))
    assert "fails (0.8x [0.7x, 0.9x]); the improved one is unclear: " in wide.reason


def test_claim_without_improved_variant_is_refuted(tmp_path):
    plain = CLAIM.model_copy(update={"improved": None})
    judged = verdict_of(plain, two_variants(tmp_path / "run", PUBLISHED, IMPROVED))
    assert (judged.verdict, judged.improved) == ("refuted", ())
    assert "variant" not in judged.reason


def test_variants_of_several_runs_are_pooled(tmp_path):
    folders = [
        two_variants(tmp_path / "a", PUBLISHED, (2.4, 2.2, 2.6)),
        two_variants(tmp_path / "b", PUBLISHED, (2.6, 2.4, 2.8), pairs=10),
    ]
    judged = verdict_of(CLAIM, *folders)
    assert judged.verdict == "holds only improved"
    assert [f.estimate.n for f in judged.numbers] == [15, 15]


def test_variants_may_come_from_different_runs(tmp_path):
    published = two_variants(tmp_path / "a", PUBLISHED)
    improved = two_variants(tmp_path / "b", improved=IMPROVED)
    assert verdict_of(CLAIM, published, improved).verdict == "holds only improved"


def test_points_have_the_improved_fields_of_the_claim_and_their_own():
    several = timed(
        points=[{"rows": {"dataset": "x"}}, {"versus": "dgl", "improved": {"of": "fastgl"}}],
        improved={"versus": "best", "rows": {"hidden": 64}},
    )
    first, second = several.improved_variant().claim_points()
    assert (first.of, first.versus) == (several.of, "best")
    assert first.rows == {"dataset": "x", "hidden": 64}
    assert (second.of, second.versus, second.rows) == ("fastgl", "best", {"hidden": 64})
    assert [p.versus for p in several.claim_points()] == [several.versus, "dgl"]
    assert all("hidden" not in p.rows for p in several.claim_points())
    assert timed().improved_variant() is None


def test_improved_numbers_are_in_json_csv_and_the_page(tmp_path):
    run = two_variants(tmp_path / "run", PUBLISHED, IMPROVED)
    judged = judge([CLAIM], open_runs([run]))
    (claim,) = json.loads(json.dumps(text.to_json(judged)))
    assert [(n["variant"], n["value"]) for n in claim["numbers"]] == [
        ("published", 0.8), ("improved", 2.5),
    ]  # fmt: skip
    assert [line.rpartition(",")[2] for line in text.to_csv(judged).splitlines()[1:]] == [
        "published", "improved",
    ]  # fmt: skip
    assert text.count(judged) == "1 claim: 1 holds only improved"
    html = page.html(tmp_path, "", judged)
    assert 'class="badge holds-only-improved"' in html
    assert len([line for line in html.splitlines() if "<td>improved: " in line]) == 1


def test_improved_needs_a_valid_measure(tmp_path):
    path = tmp_path / "mine.toml"
    head = 'title = "T"\n[[claim]]\nid = "mine/a1"\nsource = "1"\nsays = "so"\n'
    path.write_text(f'{head}lacks = "all"\nimproved = {{ of = "dgl" }}\n')
    with pytest.raises(UsageError, match="'improved' requires 'measure'"):
        load(path)
    measured = 'measure = "hit_ratio"\nof = "dgl"\nnumber = 1\nruns = ["cache-ratio smoke"]\n'
    path.write_text(f'{head}{measured}improved = {{ measure = "nothing" }}\n')
    with pytest.raises(UsageError, match="unknown measure 'nothing'"):
        load(path)


def test_formula_has_an_improved_variant_too(tmp_path):
    formula = timed(
        measure="updates", of=None, versus=None, by=None, arguments=[106, 151, 6], runs=None,
        number=2757.5, kind="value", port="P", improved={"arguments": [100, 151, 6]},
    )  # fmt: skip
    run = write_run(tmp_path / "run", [cell("a", "baseline")])
    assert verdict_of(formula, run).verdict == "refuted"
