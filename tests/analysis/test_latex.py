"""Texts and tables that LaTeX takes as they are."""

import pytest

from gnnbench.analysis.latex import escaped, tabular


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("igb_large~twin@4", r"igb\_large\textasciitilde{}twin@4"),
        ("presc#1, 5%", r"presc\#1, 5\%"),
        ("a & b {c} $d ^e \\f", r"a \& b \{c\} \$d \textasciicircum{}e \textbackslash{}f"),
        (">1000% <|*", r"$>$1000\% $<$$|${*}"),
        ("+-", r"$\pm$"),
        ("--show-different", "-{}-show-different"),
        ("---", "-{}-{}-"),
    ],
)
def test_special_characters_are_escaped(text, expected):
    assert escaped(text) == expected


def test_a_tabular_has_rules_and_numbers_to_the_right():
    assert tabular(["system", "+-"], [["a_b", "1.0%"]], [True, False]) == [
        r"\begin{tabular}{lr}",
        r"\hline",
        r"system & $\pm$ \\",
        r"\hline",
        r"a\_b & 1.0\% \\",
        r"\hline",
        r"\end{tabular}",
    ]
