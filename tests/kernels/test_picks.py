"""Pick specifications: construction, and arguments that the operators refuse."""

from typing import Any

import pytest
import torch
from ops_graphs import INDICES, INDPTR
from torch import Tensor

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels import sampler
from gnnbench.kernels.picks import PICKS, WEIGHTED, PickSpec

WEIGHTS = torch.ones(14)


def draw(spec: PickSpec, indptr: Tensor = INDPTR, indices: Tensor = INDICES) -> Any:
    return sampler.hop_by_hop(
        indptr, indices, torch.arange(6), [3, 2], pick=spec, frontier="new", key=1, batch=0
    )


def test_pick_is_built_from_its_name() -> None:
    plain = PickSpec.of("floyd")
    assert plain == PickSpec("floyd")
    assert PickSpec.of(plain) is plain
    assert plain.arguments() == ("floyd", [], [])
    assert not plain.gives_weights


def test_random_walk_restart_probability_has_32_bits() -> None:
    spec = PickSpec.random_walk(4, 3, 0.25)
    assert spec.arguments() == ("random_walk", [], [4, 3, 1 << 30])
    assert spec.gives_weights


def test_to_moves_tables_to_a_device() -> None:
    spec = PickSpec.weighted("weighted_alias", INDPTR, WEIGHTS)
    moved = spec.to("meta")
    assert [t.device.type for t in moved.tables] == ["meta", "meta"]
    assert moved.name == spec.name
    assert spec.to("cpu").tables[0].device.type == "cpu"


@pytest.mark.parametrize("name", PICKS)
def test_operator_accepts_every_pick_name(name: str) -> None:
    specs = {
        "random_walk": PickSpec.random_walk(2, 2, 0.5),
        **{w: PickSpec.weighted(w, INDPTR, WEIGHTS) for w in WEIGHTED},
    }
    batch = draw(specs.get(name, PickSpec(name)))
    assert batch.sampled_edges > 0


BAD_VALUES: list[tuple[Any, str]] = [
    (lambda: PickSpec.of("fisher"), "pick must be one of reservoir, floyd, .* not 'fisher'"),
    (lambda: PickSpec.of("weighted_alias"), "'weighted_alias' needs weights"),
    (lambda: PickSpec.of("random_walk"), "'random_walk' needs walks"),
    (lambda: PickSpec.random_walk(0, 3, 0.5), "walks must be at least 1, it is 0"),
    (lambda: PickSpec.random_walk(4, 0, 0.5), "walk_length must be at least 1, it is 0"),
    (lambda: PickSpec.random_walk(65, 64, 0.5), "at most 4096, it is 65 times 64"),
    (lambda: PickSpec.random_walk(4, 3, 1.0), "restart_probability must be at least 0 and below 1"),
    (lambda: PickSpec.random_walk(4, 3, -0.1), "restart_probability must be at least 0"),
    (lambda: PickSpec.random_walk(4, 3, float("nan")), "restart_probability must be at least 0"),
    (lambda: PickSpec.weighted("weighted_alias", INDPTR, WEIGHTS.to("meta")), "weights must be on"),
]


@pytest.mark.parametrize(("make", "message"), BAD_VALUES, ids=[m for _, m in BAD_VALUES])
def test_bad_values_are_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


BAD_SPECS: list[tuple[PickSpec, str]] = [
    (PickSpec("fisher"), "pick must be one of reservoir, floyd, .* not 'fisher'"),
    (PickSpec("floyd", (WEIGHTS,)), "pick 'floyd' takes 0 weight table"),
    (PickSpec("weighted_alias"), "pick 'weighted_alias' takes 2 weight table"),
    (PickSpec("weighted_prefix", (WEIGHTS,)), "weights must be int64, it is float32"),
    (PickSpec("weighted_prefix", (torch.zeros(3, dtype=torch.int64),)), "one entry per edge, 14"),
    (PickSpec("floyd", walk=(1, 1, 1)), "pick 'floyd' takes no walk"),
    (PickSpec("random_walk"), "walk must be \\(walks, length, restart\\), it has 0 items"),
    (PickSpec("random_walk", walk=(0, 1, 0)), "walks must be at least 1, it is 0"),
    (PickSpec("random_walk", walk=(1, 0, 0)), "walk_length must be at least 1, it is 0"),
    (PickSpec("random_walk", walk=(1 << 40, 1 << 40, 0)), "walk_length must be at most 4096"),
    (PickSpec("random_walk", walk=(1, 1, 1 << 32)), "restart must be at least 0 and below"),
]


@pytest.mark.parametrize(("spec", "message"), BAD_SPECS, ids=[m for _, m in BAD_SPECS])
def test_bad_specs_are_refused(spec: PickSpec, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        draw(spec)


def test_tables_of_another_graph_are_refused() -> None:
    # As many edges in one row: the aliases point outside the rows of this graph.
    spec = PickSpec.weighted("weighted_alias", torch.tensor([0, 14]), torch.arange(14.0))
    with pytest.raises(UsageError, match="weights holds the tables of another graph"):
        draw(spec)


def test_walks_on_a_broken_graph_are_refused() -> None:
    walks = PickSpec.random_walk(20, 5, 0.0)
    options: dict[str, Any] = {"pick": walks, "key": 1, "hop": 0, "batch": 0}
    dst = torch.tensor([5], dtype=torch.int32)  # 5 <- 0 <- 1 2 3
    invalid = INDICES.clone()
    invalid[1] = 77
    with pytest.raises(DataError, match="indices holds an id that is not a node"):
        sampler.sample_hop(INDPTR, invalid, dst, 3, **options)
    broken = INDPTR.clone()
    broken[1] = 1 << 40
    with pytest.raises(DataError, match="indptr is broken"):
        sampler.sample_hop(broken, INDICES, dst, 3, **options)
