"""Tables and sentences for LaTeX, which need no package and no setting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Signs that LaTeX takes for something else, or that its first fonts have in mathematics alone.
SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "|": "$|$", "[": "{[}", "]": "{]}", "*": "{*}", '"': "{''}",
    "\n": " ",
}  # fmt: skip
PLUS_MINUS = "$\\pm$"


def escaped(text: str) -> str:
    """A text as LaTeX prints it: ``igb_large~twin`` is ``igb\\_large\\textasciitilde{}twin``."""
    if text == "+-":
        return PLUS_MINUS
    return re.sub("-(?=-)", "-{}", "".join(SIGNS.get(sign, sign) for sign in text))


def tabular(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Iterable[bool]) -> list[str]:
    """Lines of a ``tabular``: heads between rules, numbers to the right."""
    columns = "".join("l" if side else "r" for side in left)
    told = [" & ".join(map(escaped, row)) + r" \\" for row in (heads, *rows)]
    return [
        rf"\begin{{tabular}}{{{columns}}}", r"\hline", told[0], r"\hline", *told[1:], r"\hline",
        r"\end{tabular}",
    ]  # fmt: skip
