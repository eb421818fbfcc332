"""Unit roundoffs of the precisions, and their names in tables."""

import torch

from gnnbench.core.precision import PRECISIONS, UNIT_ROUNDOFF, named


def test_unit_roundoffs_are_half_the_distance_of_neighbouring_numbers():
    assert UNIT_ROUNDOFF["float32"] == torch.finfo(torch.float32).eps / 2
    assert UNIT_ROUNDOFF["bfloat16"] == torch.finfo(torch.bfloat16).eps / 2
    assert UNIT_ROUNDOFF["tf32"] == torch.finfo(torch.float16).eps / 2  # as many bits as float16
    assert PRECISIONS == tuple(UNIT_ROUNDOFF) == ("float32", "tf32", "bfloat16")


def test_tables_name_a_precision_unless_it_is_float32():
    assert [named(p) for p in PRECISIONS] == ["", "tf32", "bfloat16"]
