"""Types of the values of definition files."""

from __future__ import annotations

from typing import Any

AxisType = Any
"""The annotated type by which pydantic validates the values of an axis; typing has no name for
it."""
