import pytest

from gnnbench.measure.work import work_class

BASE = {
    "digest": "abc",
    "frontier": "cumulative",
    "law": "without-replacement",
    "edges_per_seed": 100.0,
    "nodes_per_seed": 50.0,
}


@pytest.mark.parametrize(
    "change,expected",
    [
        ({}, "identical"),
        ({"edges_per_seed": 500.0}, "identical"),
        ({"digest": ""}, "equivalent"),
        ({"digest": "xyz", "edges_per_seed": 100.9, "nodes_per_seed": 49.6}, "equivalent"),
        ({"digest": "", "edges_per_seed": 101.1}, "different"),
        ({"digest": "", "nodes_per_seed": 49.4}, "different"),
        ({"digest": "", "frontier": "new"}, "different"),
        ({"digest": "", "law": "with-replacement"}, "different"),
    ],
)
def test_classes(change, expected):
    assert work_class(BASE, {**BASE, **change}) == expected


def test_two_empty_digests_are_not_identical():
    foreign = {**BASE, "digest": ""}
    assert work_class(foreign, foreign) == "equivalent"


def test_another_dtype_is_different_work():
    one = BASE
    assert work_class(one | {"dtype": "float32"}, one | {"dtype": "float16"}) == "different"
    assert work_class(one | {"dtype": "float32"}, one | {"dtype": "float32"}) == "identical"
    assert (
        work_class(one | {"dtype": "float32"}, one | {"dtype": ""}) == "identical"
    )  # samples only
