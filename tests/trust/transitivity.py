"""Whether ratios multiply: reference / x, x / y and y / reference of one run, as three comparisons.

    gnnbench run transitivity && python tests/trust/transitivity.py RUN

Goes around each couple of the definition next to the reference. Prints the product
with its 95 % interval (Welch's degrees of freedom) and the widest half-width of a ratio; exit code
1 where an interval leaves 1 out or a half-width is above 5 %.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from gnnbench.analysis.labels import fits
from gnnbench.schema import reader
from gnnbench.statistics.estimates import t_quantile

MOST = 0.05


def around(rows: list[tuple[dict[str, Any], int]]) -> tuple[float, float, float]:
    """Product of ratios (row, +1 or -1) and its interval."""
    middle = sum(sign * math.log(row["ratio"]) for row, sign in rows)
    parts = [(row["sd_pair"] ** 2 / row["pairs"], row["pairs"] - 1) for row, _ in rows]
    variance = sum(v for v, _ in parts)
    half = t_quantile(0.95, variance**2 / sum(v**2 / n for v, n in parts)) * math.sqrt(variance)
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def main() -> None:
    """Go around every couple of a run."""
    run = reader.read(Path(sys.argv[1]))
    wrong = False
    for couple in run.ratios:
        alike = {k: couple[k] for k in ("dataset", "batch_size", "fanouts", "threads", "device")}
        group = [r for r in run.cells if all(r[k] == v for k, v in alike.items()) and r["ratio"]]
        x = next(r for r in group if fits(r, couple["first"]))
        y = next(r for r in group if fits(r, couple["second"]))
        value, low, high = around([(x, 1), (couple, 1), (y, -1)])
        widest = max(math.log(r["ratio_ci_high"] / r["ratio_ci_low"]) / 2 for r in (x, couple, y))
        wrong |= not low <= 1 <= high or widest > MOST
        ratios = ", ".join(f"{r['ratio']:.3f}" for r in (x, couple, y))
        print(
            f"reference / x, x / y, reference / y = {ratios}; x = {couple['first']}, y ="
            f" {couple['second']}: product {value:.4f} [{low:.4f}, {high:.4f}], widest half-width"
            f" {widest:.1%}"
        )
    sys.exit(wrong or not run.ratios)


if __name__ == "__main__":
    main()
