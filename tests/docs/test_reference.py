"""The reference page of all settings is generated from the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnnbench.config import manual, messages
from gnnbench.config.axes import AXES, check_axis
from gnnbench.config.experiment import Experiment, MeasureLimits
from gnnbench.core import registry

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text() == manual.markdown(), (
        "run 'python -m gnnbench.config.manual > docs/reference.md'"
    )


def test_every_setting_is_listed_with_a_description() -> None:
    rows = [line.split(" | ") for line in manual.markdown().splitlines() if line.startswith("| `")]
    names = {row[0].strip("| `") for row in rows}
    assert {*Experiment.model_fields, *MeasureLimits.model_fields, *AXES, "extends"} <= names
    for kind in registry.KINDS:
        assert {*registry.OURS[kind]} <= names
    undescribed = [row[0] for row in rows if not row[-1].strip("| ") and "wholegraph" not in row[0]]
    assert undescribed == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"enum": ["a", "b"]}, "a, b"),
        ({"type": "integer", "minimum": 0}, "whole number from 0"),
        (
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "number above 0 below 1",
        ),
        ({"type": "array", "items": {"type": "integer"}}, "list: whole number"),
        ({"type": "boolean"}, "true, false"),
    ],
)
def test_legal_values_as_text(schema: dict[str, object], words: str) -> None:
    assert messages.legal(schema) == words


def test_definition_of_the_page_is_valid(tmp_path: Path) -> None:
    from gnnbench.config import experiment as definitions

    text = manual.HEAD.partition("```toml\n")[2].partition("```")[0]
    path = tmp_path / "mine.toml"
    path.write_text(text)
    resolved = definitions.resolve(definitions.load(str(path)))
    assert resolved.axis("dataset") == ["products~twin@0.01"]
    check_axis("fanouts", resolved.axis("fanouts"))
