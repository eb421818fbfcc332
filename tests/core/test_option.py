"""Options: legal values, and messages for illegal ones."""

import pytest

from gnnbench.core.errors import UsageError
from gnnbench.core.option import Interval, Option

FUSED = Option("fused", True, "one operator", (True, False))
SIZE = Option("size", 5, "how many", range(1, 33))
ID = Option("id", "int64", "type", ("int64", "int32", "int16"))
ONE = Option("dtype", "float32", "only one", ("float32",))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (FUSED, True), (FUSED, False), (SIZE, 1), (SIZE, 32), (ID, "int32"),
        (Option("any", 1, "anything"), [1, {"a": None}]),
    ],
)  # fmt: skip
def test_legal_values_are_unchanged(option, value):
    assert option.check("x", value) is value


def test_interval_may_have_additional_words():
    size = Option("size", 0.5, "how much", Interval(0, 1, ("auto",)))
    assert (size.check("x", "auto"), size.check("x", 1)) == ("auto", 1.0)
    with pytest.raises(UsageError, match=r"cannot be all; it is a number from 0 to 1 or auto"):
        size.check("x", "all")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        (FUSED, "maybe", r"x\.fused cannot be maybe; it is true or false"),
        (FUSED, 1, "cannot be 1; it is true or false"),
        (SIZE, True, "cannot be true; it is 1 to 32"),
        (SIZE, 0, "cannot be 0; it is 1 to 32"),
        (SIZE, 33, "cannot be 33"),
        (SIZE, 5.0, "cannot be 5.0"),
        (SIZE, "5", "cannot be 5; it is 1 to 32"),
        (ID, "int8", "cannot be int8; it is int64, int32 or int16"),
        (ID, ["int64"], r'cannot be \["int64"\]'),
        (ID, None, "cannot be null"),
        (ONE, "float16", "it is float32$"),
    ],
)
def test_illegal_values_are_refused_with_the_legal_ones(option, value, words):
    with pytest.raises(UsageError, match=words):
        option.check("x", value)


@pytest.mark.parametrize("value", [0, 1, 0.25])
def test_number_of_an_interval_is_a_float(value):
    checked = Option("ratio", 0.1, "", Interval(0, 1)).check("x", value)
    assert checked == value and type(checked) is float


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "0.5", True])
def test_value_outside_an_interval_is_refused_with_its_bounds(value):
    with pytest.raises(UsageError, match=r"x\.ratio cannot be .*; it is a number from 0 to 1"):
        Option("ratio", 0.1, "", Interval(0, 1)).check("x", value)


def test_option_without_choices_accepts_anything():
    assert Option("any", 1, "").legal == "anything"
