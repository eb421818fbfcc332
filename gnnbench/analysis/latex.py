"""Tables and sentences for LaTeX, which need no package and no setting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnnbench.core import text as safe

PLUS_MINUS = "$\\pm$"


def escaped(text: str) -> str:
    """A text as LaTeX prints it: ``igb_large~twin`` is ``igb\\_large\\textasciitilde{}twin``."""
    if text == "+-":
        return PLUS_MINUS
    return safe.latex(text)


def tabular(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Iterable[bool]) -> list[str]:
    """Lines of a ``tabular``: heads between rules, numbers to the right."""
    columns = "".join("l" if side else "r" for side in left)
    lines = [" & ".join(map(escaped, row)) + r" \\" for row in (heads, *rows)]
    return [
        rf"\begin{{tabular}}{{{columns}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline",
        r"\end{tabular}",
    ]  # fmt: skip
