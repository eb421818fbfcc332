"""A stage that computes something else once the gate is over is detected in its timed epochs."""

import pytest
from planted import assert_incorrect, register, run_systems

SAMPLERS = {
    "honest-timed": "HONEST", "half-the-edges": "HALF_THE_EDGES",
    "one-neighbour": "ONE_NEIGHBOUR", "any-neighbours": "ANY_NEIGHBOURS",
    "old-numbers": "OLD_NUMBERS", "old-numbers-reported": "OLD_NUMBERS_REPORTED",
    "lazy-blocks": "LAZY_BLOCKS", "drops-copies": "DROPS_COPIES",
    "knows-the-key": "KNOWS_THE_KEY", "lazy": "LAZY", "old-neighbours": "OLD_NEIGHBOURS",
}  # fmt: skip
STORES = {"stale-middle": "STALE_MIDDLE", "lazy-rows": "LAZY_ROWS"}
LOOKED = "^(in a timed epoch|after timing): batch [0-9]: "
INCORRECT = {
    "half-the-edges": LOOKED + "hop [23]: a destination has another number of edges than min",
    "one-neighbour": LOOKED + "hop [23]: an edge was drawn twice for one destination",
    "any-neighbours": LOOKED + "hop [23]: an edge is none of the graph's",
    "old-numbers": "the reported sizes are not those of the blocks",
    "old-numbers-reported": "it drew other edges than the reference|its picks are not",
    "knows-the-key": LOOKED + "hop [23]: an edge is none of the graph's",
    "lazy": "the sizes of a batch must contain plain tensors and integers",
    "lazy-blocks": "a batch must contain plain tensors, blocks and integers, not LazyIndices",
    "drops-copies": "0 batches were copied aside where at least [0-9] were chosen",
    "old-neighbours": LOOKED + "hop 1: ",
}
STALE = LOOKED + "gathered feature rows differ from the feature table"
# One of each way to be found also where epochs train: by edges, numbers, copies, blocks and rows.
WHOLE = (
    "honest-timed", "half-the-edges", "old-numbers-reported", "drops-copies", "lazy-blocks",
    "stale-middle",
)  # fmt: skip
SMALL = ("fanouts=[4, 3]", "batch_size=64", "threads=1")


def outcome_of(native_patch, systems, out, until):
    register(native_patch, "verified_cheats", {**SAMPLERS, **STORES})
    options = (*SMALL, "hidden=8" if until == "compute" else f"until={until}")
    outcome = run_systems(["baseline", *systems], out, "baseline", options=options)
    return {r["system"]: r for r in outcome.rows}


@pytest.fixture(scope="module")
def whole(native_patch, tmp_path_factory):
    return outcome_of(native_patch, WHOLE, tmp_path_factory.mktemp("whole"), "compute")


@pytest.fixture(scope="module")
def sampling(native_patch, tmp_path_factory):
    return outcome_of(native_patch, SAMPLERS, tmp_path_factory.mktemp("sampling"), "sample")


@pytest.fixture(scope="module")
def loading(native_patch, tmp_path_factory):
    return outcome_of(native_patch, STORES, tmp_path_factory.mktemp("loading"), "memory_io")


@pytest.mark.parametrize("until", ["whole", "sampling"])
def test_the_honest_twin_passes(request, until):
    row = request.getfixturevalue(until)["honest-timed"]
    assert (row["status"], row["reason"], row["work_class"]) == ("ok", "", "identical")


@pytest.mark.parametrize("system", INCORRECT)
def test_wrong_edges_are_found(sampling, system):
    assert_incorrect(sampling[system], INCORRECT[system])


@pytest.mark.parametrize("system", [s for s in WHOLE if s in INCORRECT])
def test_wrong_edges_are_found_where_epochs_train(whole, system):
    assert_incorrect(whole[system], INCORRECT[system])


@pytest.mark.parametrize("until", ["whole", "loading"])
def test_stale_rows_in_the_middle_are_found(request, until):
    assert_incorrect(request.getfixturevalue(until)["stale-middle"], STALE)


def test_rows_of_another_class_are_refused(loading):
    assert_incorrect(loading["lazy-rows"], "feature rows must be a torch.Tensor, not LazyRows")
