"""Verdicts and numbers of every claim over the committed results, as the command line prints."""

from __future__ import annotations

import json
from typing import Any

from golden_files import ROOT
from typer.testing import CliRunner

from gnnbench.cli import app

ARCHIVE = "verdicts.json.xz"
LINES = "verdicts.txt"
RESULTS = ROOT / "results" / "reference"
NUMBERS = ("value", "low", "high", "n", "expected_low", "expected_high", "finding", "dataset")


def current() -> dict[str, dict[str, Any]]:
    """By claim its verdict and its numbers; free text is left out."""
    ended = CliRunner().invoke(app, ["verdicts", str(RESULTS), "--format", "json"])
    assert ended.exit_code in (0, 5), ended.output
    return {
        claim["claim"]: {
            "verdict": claim["verdict"],
            "numbers": [
                {
                    **{key: number[key] for key in NUMBERS},
                    "run": number["run"].partition("results/reference/")[2],
                }
                for number in claim["numbers"]
            ],
        }
        for claim in json.loads(ended.stdout)
    }


def lines(found: dict[str, dict[str, Any]]) -> list[str]:
    """One line for each claim: verdict, how many numbers, and the first of them."""
    return [
        f"{claim}: {known['verdict']}, {len(known['numbers'])} numbers"
        + "".join(f", {n['value']!r} [{n['low']!r}, {n['high']!r}]" for n in known["numbers"][:1])
        for claim, known in found.items()
    ]
