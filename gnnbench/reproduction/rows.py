"""Rows of the tables of a run."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
