"""Reasons of verdicts, and what supports a claim on a twin, with texts written by hand."""

import pytest
from written_runs import cached, cell, claim, epochs, metric, timed, verdict_of, write_run

from gnnbench.reproduction import text
from gnnbench.reproduction.claim import papers
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.group_labels import marked_name, side_label
from gnnbench.reproduction.judge import judge
from gnnbench.reproduction.report import repeated, sentence

HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
WIDE = [{"cache": n, "host": 100 - n} for n in (40, 42, 38)]  # 40 % +- 4.97
OUTSIDE = "the number is outside the claimed range"


def test_what_the_measured_points_say_follows_the_missing_ones(one):
    both = [{}, {"of": "tsota features.policy=random"}]
    judged = verdict_of(claim(number=0.545, tolerance=0.05, points=both), one(HALF))
    assert judged.verdict == "unclear"
    first, second = judged.reason.split("; ")
    assert first.startswith("1 of 2 points measured: run 'gnnbench run cache-ratio")
    assert second == "`tsota` (50 [47.52, 52.48] %): the interval contains the bound 49.5 %"


def test_numbers_that_may_contradict_by_chance_are_counted(tmp_path):
    """An interval of three epochs, 2.48 points wide, is 6.47 points wide as one of four of them.

    Student's t of two degrees of freedom is 4.303 at 95 % and 8.860 at 98.75 %.
    """
    near = [{"cache": n, "host": 100 - n} for n in (46, 47, 45)]
    cells = [cached(i, "degree", 0.1, dataset=f"{i}~twin") for i in "abcd"]
    served = [
        e for i, h in zip("abcd", (HALF, HALF, near, near), strict=True) for e in epochs(i, *h)
    ]
    folder = write_run(tmp_path / "run", cells, served)
    order = claim(number=None, tolerance=None, kind="order", least=0.486)
    judged = verdict_of(order, folder)
    assert judged.verdict == "unclear"
    assert judged.reason == (
        "`tsota`, c~twin (46 [43.52, 48.48] %): only 2 of 4 numbers contradict it, which may be"
        " chance; for 4 numbers together it is 46 [41.03, 51.26] %, and the interval contains the"
        " bound 48.6 %"
    )
    best = claim(kind="upto", number=0.5, tolerance=0.05)
    served = [
        e for i, h in zip("abcd", (HALF, near, near, near), strict=True) for e in epochs(i, *h)
    ]
    judged = verdict_of(best, write_run(tmp_path / "best", cells, served))
    assert judged.reason == (
        "`tsota`, a~twin (50 [47.52, 52.48] %): only one of 4 numbers reaches it, which may be"
        " chance; for 4 numbers together it is 50 [45.02, 55.25] %, and the interval contains the"
        " bound 47.5 %"
    )


def test_best_of_the_unclear_numbers_gives_the_reason_of_an_upto(tmp_path):
    cells = [cached(i, "degree", 0.1, dataset=f"{i}~twin") for i in "ab"]
    served = [*epochs("a", WIDE[0]), *epochs("b", HALF[0])]
    judged = verdict_of(claim(kind="upto", number=0.5), write_run(tmp_path / "run", cells, served))
    assert judged.verdict == "unclear"
    assert judged.reason == (
        "`tsota`, b~twin (50 %): a single epoch or process has no interval; two or more are needed"
    )


def test_contradiction_by_a_twin_says_why_it_does_not_refute(one):
    judged = verdict_of(claim(of_graph=True, number=0.3), one(HALF))
    assert judged.verdict == "not reproduced"
    assert judged.reason == (
        f"`tsota`: {OUTSIDE}. It was measured on a twin of papers100m, so it does not refute the"
        " claim"
    )


def test_absolute_size_that_differs_has_the_rates_of_this_machine(one, tmp_path):
    size = claim(id="zero-copy/fig0.a1", number=0.9, port="S", cause="rates")
    copies = write_run(
        tmp_path / "copies", [cell("g", "baseline", device="cuda")],
        metrics=[metric("g", "features", "copy_rate", 55e9, where="zero_copy")],
    )  # fmt: skip
    judged = verdict_of(size, one(HALF), copies)
    assert judged.verdict == "not reproduced"
    assert judged.reason.endswith(
        "so it does not refute the claim. This link copies at 55.0 GB/s, 2.1 times as fast as the"
        " paper's (RTX 3090: 25.8 GB/s)"
    )
    agreeing = size.model_copy(update={"number": 0.5})
    assert verdict_of(agreeing, one(HALF, name="x"), copies).reason == ""


def test_refuted_ratio_states_rates_of_link(two, tmp_path):
    slow = timed(id="zero-copy/fig0.a1", cause="rates")
    link = papers()["zero-copy"].rates.link
    judged = verdict_of(slow, two(0.8, 0.7, 0.9))
    assert judged.verdict == "refuted"
    assert "This link was not measured" in judged.reason
    copies = write_run(
        tmp_path / "copies", [cell("g", "baseline", device="cuda")],
        metrics=[metric("g", "features", "copy_rate", 2 * link, where="zero_copy")],
    )  # fmt: skip
    judged = verdict_of(slow, tmp_path / "run", copies)
    assert judged.reason.endswith(
        "This link copies at 51.6 GB/s, 2.0 times as fast as the paper's (RTX 3090: 25.8 GB/s)"
    )


def test_refuted_ratio_states_rate_of_memory_from_roofline(two, tmp_path):
    ceiling = {
        "kind": "ceiling", "device": "cuda", "name": "read", "level": "memory", "value": 938e9 * 4,
        "unit": "B/s", "n": 5,
    }  # fmt: skip
    folder = write_run(tmp_path / "roof", [cell("g", "baseline")], roofline=[ceiling])
    judged = verdict_of(timed(id="fastgl/fig0.a1", cause="rates"), two(0.8, 0.7, 0.9), folder)
    assert "this memory copies at 3750 GB/s, 4.0 times as fast as the paper's" in judged.reason


def test_order_on_a_twin_holds_in_shape_and_says_so(two):
    judged = verdict_of(timed(of_graph=True), two(1.4, 1.3, 1.5))
    assert judged.verdict == "holds in shape"
    assert judged.reason.endswith("the order agrees, the size does not; twin of papers100m")


def test_improved_variant_may_hold_on_a_twin(tmp_path):
    improved = {"of": "tsota features.policy=random"}
    cells = [cached("a", "degree", 0.1), cached("b", "random", 0.1, dataset="twitter~twin")]
    cells[0]["dataset"] = "papers100m"
    served = [*epochs("a", *WIDE), *epochs("b", *HALF)]
    statement = claim(of_graph=True, improved=improved, tolerance=0.03)
    judged = verdict_of(statement, write_run(tmp_path / "run", cells, served))
    assert judged.verdict == "holds only improved"


def test_mean_is_named_with_its_value(tmp_path):
    cells = [cached("a", "degree", 0.1), cached("b", "degree", 0.1, dataset="twitter~twin")]
    served = [*epochs("a", *HALF), *epochs("b", *WIDE)]
    folder = write_run(tmp_path / "run", cells, served)
    assert verdict_of(claim(kind="mean", number=0.45), folder).reason == "mean of 2 numbers, 45 %"
    judged = verdict_of(claim(kind="mean", number=0.9), folder)
    assert judged.reason == f"mean of 2 numbers, 45 %: {OUTSIDE}"


def test_points_that_have_no_run_are_missing_whatever_the_kind(one):
    points = [{"rows": {"fanouts": "15/10/5"}}, {"rows": {"fanouts": "10/10"}}]
    bound = claim(kind="bound", number=None, tolerance=None, least=0.1, points=points)
    judged = verdict_of(bound, one(HALF))
    assert judged.verdict == "unclear"
    assert judged.reason == (
        "1 of 2 points measured: run 'gnnbench run cache-ratio --profile laptop'"
    )
    gpu = bound.model_copy(update={"as_printed": {"device": "cuda"}})
    judged = verdict_of(gpu, one(HALF, name="again"))
    assert "laptop' on a GPU; `tsota`: device is cpu, the paper has cuda" in judged.reason


def test_count_states_arithmetic_and_fitted_twins(one):
    formula = claim(
        measure="updates", of=None, arguments=[106, 151, 6], number=2756.0, runs=None, unit=""
    )
    wrong = formula.model_copy(update={"number": 1.0})
    twin = claim(of_graph=True, fitted=["papers100m"])
    other = claim(of_graph=True, fitted=["reddit"])
    runs = open_runs([one(HALF)])
    assert text.count(judge([formula, formula, wrong, twin, twin, other], runs)) == (
        "6 claims: 2 hold, 3 hold on a twin, 1 refuted; 2 of the claims that hold follow from"
        " arithmetic on the papers' numbers, without a run; 2 of the claims that hold on a twin"
        " have the very number to which their twin was fitted"
    )
    assert text.count(judge([formula, twin], runs)).endswith(
        "; 1 claim that holds follows from arithmetic on the papers' numbers, without a run;"
        " 1 claim that holds on a twin has the very number to which its twin was fitted"
    )


def test_label_of_several_seeds_has_their_range(tmp_path):
    rows = [cell(f"c{n}", "baseline", seed=n, batch_size=8000) for n in range(5)]
    rows.append(cell("other", "baseline", seed=9, batch_size=800))
    (evidence,) = open_runs([write_run(tmp_path / "run", rows)])
    cells = evidence.run.cells
    assert side_label("seed", cells[:5], evidence) == "`baseline`, batch 8000, seeds 0 to 4"
    two = side_label("seed", [cells[0], cells[2]], evidence)
    assert two == "`baseline`, batch 8000, seeds 0, 2"
    assert side_label("seed", cells[:1], evidence) == "`baseline`, batch 8000, seed 0"


@pytest.mark.parametrize(
    ("label", "marked"),
    [
        ("tsota features.ratio=0.1, x~twin", "`tsota features.ratio=0.1`, x~twin"),
        ("vanilla (2 machines, 1 Gbit/s)", "`vanilla` (2 machines, 1 Gbit/s)"),
        ("pyg (unverified) a=b, batch 1", "`pyg (unverified) a=b`, batch 1"),
        ("dgl", "`dgl`"),
    ],
)
def test_name_of_a_label_is_code(label, marked):
    assert marked_name(label) == marked


def test_text_for_terminals_and_programs_has_no_backticks(one):
    judged = judge([claim(number=0.3, says="`x` hits")], open_runs([one(HALF)]))
    (fields,) = text.to_json(judged)
    assert (fields["says"], fields["reason"]) == ("x hits", f"tsota: {OUTSIDE}")
    assert fields["numbers"][0]["what"] == "tsota"
    assert not any("`" in line for line in [*text.remarks(judged), text.to_csv(judged)])


def test_sentence_begins_with_a_capital_letter_unless_with_code():
    assert sentence("dgl is slow") == "Dgl is slow."
    assert sentence("`dgl` is slow") == "`dgl` is slow."


def test_claims_about_the_same_numbers_refer_to_the_first():
    by_id = {c.id: c for c in papers()["pgsampler"].claim}
    assert repeated(by_id["pgsampler/abs3"]) == "pgsampler/fig11.a1"
    assert repeated(by_id["pgsampler/fig11.a1"]) == ""
    assert repeated(by_id["pgsampler/table3.a1"]) == ""  # it is not measured


def test_largest_match_degree_is_exact(tmp_path):
    rows = [
        metric("a", "order", f"match_degree{end}", value)
        for end, value in (("", 0.93), ("_least", 0.92), ("_most", 0.945))
    ]
    folder = write_run(tmp_path / "run", [cell("a", "baseline")], metrics=rows)
    upto = claim(
        measure="match_degree_most", of="baseline", kind="upto", number=0.96, tolerance=None
    )
    judged = verdict_of(upto, folder)
    assert judged.verdict == "holds" and judged.findings[0].estimate.value == 0.945
    # 95 % of 1 is more.
    assert verdict_of(upto.model_copy(update={"number": 1.0}), folder).verdict == "refuted"


def test_cell_that_trained_refutes_that_it_cannot(tmp_path):
    cannot = claim(
        measure="trains", of="tsota", number=0.0, tolerance=0.0, unit="cannot|trains",
        note="it trained",
    )  # fmt: skip
    trained = [cached("a", "degree", 0.1, until="compute"), cached("b", "degree", 0.2)]
    folder = write_run(tmp_path / "run", trained, [*epochs("a", *HALF), *epochs("b", *HALF)])
    judged = verdict_of(cannot, folder)
    assert (judged.verdict, judged.reason, len(judged.findings)) == ("refuted", "", 1)
    sampled = write_run(tmp_path / "sampled", trained[1:], epochs("b", *HALF))
    assert verdict_of(cannot, sampled).verdict == "not measured"


def test_sizes_of_gnnlab_are_binary():
    """GNNLab's MB and GB are MiB and GiB: its 53 GB are 111 million rows of 128 floats."""
    assert pytest.approx(52.93, abs=0.01) == 111_000_000 * 128 * 4 / 2**30
    by_id = {c.id.partition("/")[2]: c for c in papers()["gnnlab"].claim}
    (samples,) = by_id["s5.3.a1"].claim_points()
    assert samples.expected("range") == (200 * 2**20 - 53687091, 1503238554 + 53687091)
    assert (round(1.4 * 2**30), round(0.05 * 2**30)) == (1503238554, 53687091)
    (wide,) = by_id["fig4b.a3"].claim_points()
    assert wide.least == 1.5 * 2**30 / (768 * 4)
    presc, degree = by_id["fig11c.a1"].claim_points()
    assert presc.most == round(500 * 2**20 / 3600) and degree.number == round(2 * 2**30 / 3600)
