"""Values of definition files, before and after each axis has validated its own."""

from __future__ import annotations

from typing import Any

AxisValue = Any
"""A value of an axis: a text, a number, or a list of fanouts."""

AxisType = Any
"""The annotated type by which pydantic validates the values of an axis."""

AxisTable = dict[str, list[AxisValue]]
"""Axis -> values."""
