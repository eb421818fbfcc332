"""Precision of a model's matrix products in training."""

from __future__ import annotations

from collections.abc import Mapping

FLOAT32, TF32, BFLOAT16 = PRECISIONS = ("float32", "tf32", "bfloat16")

# Largest relative error of rounding to nearest: 2^-p for a significand of p bits.
UNIT_ROUNDOFF: Mapping[str, float] = {FLOAT32: 2.0**-24, TF32: 2.0**-11, BFLOAT16: 2.0**-8}


def named(precision: str) -> str:
    """Return a precision as columns have it: "" for float32."""
    return "" if precision == FLOAT32 else precision
