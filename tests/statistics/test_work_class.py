import pytest

from gnnbench.statistics.work_class import drawn_alike, drawn_class, same_updates, work_class

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
def test_class_depends_on_digest_law_and_sizes(change, expected):
    assert work_class(BASE, {**BASE, **change}) == expected


@pytest.mark.parametrize(
    "seeds,nodes,expected",
    [
        (10, 54.9, "equivalent"), (10, 55.1, "different"),  # at most 10 %
        (1600, 50.9, "equivalent"), (1600, 51.1, "different"),  # 4 sqrt(2 / 80,000) = 2 %
        (10**6, 50.4, "equivalent"), (10**6, 50.6, "different"),  # at least 1 %
    ],
)  # fmt: skip
def test_tolerance_of_node_counts_depends_on_the_sample(seeds, nodes, expected):
    one = {**BASE, "digest": "", "details": {"seeds": seeds}}
    assert work_class(one, {**one, "nodes_per_seed": nodes}) == expected


def test_batches_per_update_change_the_work_class_but_not_the_draws():
    def every(batches):
        return {**BASE, "details": {"batches_an_update": batches}}

    assert work_class(BASE, every(1)) == "identical" and same_updates(BASE, every(1))
    assert work_class(every(2), every(2)) == "identical" and same_updates(every(2), every(2))
    for other in (2, 0):  # 0: not the same in all updates
        assert work_class(BASE, every(other)) == "equivalent"
        assert drawn_class(BASE, every(other)) == "identical"
        assert not same_updates(BASE, every(other))
    assert not same_updates(every(0), every(0))


def test_work_of_another_precision_is_different():
    def narrow(precision, **others):
        return {**BASE, **others, "details": {"precision": precision}}

    assert work_class(BASE, narrow("bfloat16")) == "different"
    assert work_class(narrow("tf32"), BASE) == "different"
    assert work_class(narrow("tf32"), narrow("bfloat16")) == "different"
    for precision in ("tf32", "bfloat16"):
        assert work_class(narrow(precision), narrow(precision)) == "identical"
        assert work_class(narrow(precision), narrow(precision, digest="")) == "equivalent"


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


@pytest.mark.parametrize(
    ("one", "other", "work", "expected"),
    [
        (4000, 4000, "identical", True), (4000, 3999, "identical", False),
        (10**6, 970_000, "equivalent", True), (10**6, 969_000, "equivalent", False),
        (200, 280, "equivalent", True), (200, 281, "equivalent", False),  # 4 * sqrt(400)
        (4000, 1, "different", True),
    ],
)  # fmt: skip
def test_tolerance_of_drawn_counts_depends_on_the_work_class(one, other, work, expected):
    assert drawn_alike(one, other, work) == expected
