"""Properties of twins: counts, degrees, communities, learnable features, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.core.errors import UsageError
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.twin import generate, generate_arrays, law_points
from gnnbench.datasets.store.disk import graph_lock
from gnnbench.datasets.store.reader import open_graph, verify
from gnnbench.datasets.store.writer import GraphWriter

Arrays = dict[str, np.ndarray]


def recipe(**changes: object) -> TwinRecipe:
    values: dict[str, object] = {
        "num_nodes": 40_000,
        "num_edges": 800_000,
        "feature_dim": 32,
        "num_classes": 8,
        "train": 0.2,
        "val": 0.1,
        "test": 0.7,
        "symmetric": True,
        "communities": 40,
    }
    return TwinRecipe.model_validate({**values, **changes})


def rows(graph: Arrays) -> np.ndarray:
    """Destination of every stored edge."""
    degree = np.diff(graph["indptr"])
    return np.repeat(np.arange(len(degree)), degree)


def homophily(graph: Arrays) -> float:
    labels = graph["labels"]
    return float((labels[rows(graph)] == labels[graph["indices"]]).mean())


@pytest.fixture(scope="module")
def symmetric() -> Arrays:
    return generate_arrays(recipe())


@pytest.fixture(scope="module")
def directed() -> Arrays:
    return generate_arrays(
        recipe(symmetric=False, degree_ratio=1.6, out_degree_ratio=1.1, isolated=0.25)
    )


@pytest.mark.parametrize("kind", ["symmetric", "directed"])
def test_counts_are_exact_and_edges_distinct(kind: str, request: pytest.FixtureRequest) -> None:
    graph = request.getfixturevalue(kind)
    n, dst, src = 40_000, rows(graph), graph["indices"].astype(np.int64)
    assert graph["indptr"].shape == (n + 1,)
    assert src.shape == (800_000,)
    assert src.min() >= 0
    assert src.max() < n
    assert (dst != src).all()
    assert (np.diff(dst * n + src) > 0).all()  # ascending in every row, none twice
    assert graph["features"].shape == (n, 32)
    assert graph["labels"].shape == (n,)
    assert [len(graph[f"{s}_idx"]) for s in ("train", "val", "test")] == [8000, 4000, 28_000]
    parts = np.concatenate([graph[f"{s}_idx"] for s in ("train", "val", "test")])
    np.testing.assert_array_equal(np.sort(parts), np.arange(n))


def test_symmetric_twin_has_every_edge_in_both_directions(
    symmetric: Arrays, directed: Arrays
) -> None:
    for graph, expected in ((symmetric, True), (directed, False)):
        dst, src = rows(graph), graph["indices"].astype(np.int64)
        same = np.array_equal(np.sort(src * 40_000 + dst), dst * 40_000 + src)
        assert same == expected


def test_degrees_follow_their_distribution(symmetric: Arrays, directed: Arrays) -> None:
    degree = np.sort(np.diff(symmetric["indptr"]))[::-1]
    # The ratio is 1.4 per octave: the first rank has 40,000 ^ log2(1.4) = 171 times the degree of
    # the last rank, which has slightly more than half the mean. Communities of 1,000 nodes do not
    # limit degrees. Ranks n/8 to n/4 have 1.4 times the mean degree of ranks n/4 to n/2.
    assert 80 < degree[0] / degree.mean() < 120
    high, low = degree[5000:10_000].mean(), degree[10_000:20_000].mean()
    assert high / low == pytest.approx(1.4, rel=0.08)
    incoming = np.diff(directed["indptr"])
    outgoing = np.bincount(directed["indices"], minlength=40_000)
    assert (incoming == 0).mean() == pytest.approx(0.25, abs=0.01)
    assert incoming.max() > 20 * outgoing.max()
    assert abs(np.corrcoef(incoming, outgoing)[0, 1]) < 0.05


def test_settings_of_the_degree_distribution() -> None:
    bent = generate_arrays(
        recipe(num_edges=4_000_000, degree_ratio=[4, 1, 2], communities=8, degree_cap=30)
    )
    degree = np.sort(np.diff(bent["indptr"]))[::-1]
    means = [degree[40_000 >> j : 40_000 >> j - 1].mean() for j in (1, 2, 3, 4)]
    # Octaves between the weights 1, 4, 4, 8, 16 have the means 2.5, 4, 6, 12.
    np.testing.assert_allclose(means / means[1], [0.625, 1, 1.5, 3], rtol=0.1)
    flat = np.diff(generate_arrays(recipe(degree_ratio=1))["indptr"])
    assert flat.max() < 3 * flat.mean()
    capped = np.diff(generate_arrays(recipe(degree_ratio=1.8, degree_cap=20))["indptr"])
    assert 14 < capped.max() / capped.mean() < 26
    tied = generate_arrays(recipe(symmetric=False, degree_tie=1, out_degree_ratio=1.4))
    outgoing = np.bincount(tied["indices"], minlength=40_000)
    assert np.corrcoef(np.diff(tied["indptr"]), outgoing)[0, 1] > 0.9


@pytest.mark.parametrize("mixing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("symmetric", [True, False])
def test_mixing_is_the_share_of_edges_between_communities(mixing: float, symmetric: bool) -> None:
    # One community per class, so that labels identify communities.
    graph = generate_arrays(recipe(mixing=mixing, communities=8, symmetric=symmetric))
    assert homophily(graph) == pytest.approx(1 - mixing, abs=0.002)
    skewed = generate_arrays(recipe(communities=8, class_skew=1, symmetric=symmetric))
    counts = np.bincount(skewed["labels"])
    assert counts[0] / counts[7] == pytest.approx(8, rel=0.01)


def test_region_mixing_is_the_share_of_edges_between_regions() -> None:
    shares = {}
    for region_mixing in (0.0, 0.5, 1.0):
        graph = generate_arrays(
            recipe(
                num_classes=40,
                mixing=0.5,
                regions=4,
                region_mixing=region_mixing,
                train_home=0.25,
                train_locality=1,
                train=0.25,
                val=0,
                test=0,
            )
        )
        home = np.zeros(40_000, bool)
        home[graph["train_idx"]] = True  # the first region, exactly
        shares[region_mixing] = (home[rows(graph)] != home[graph["indices"]]).mean()
    assert shares[0.0] == 0
    assert shares[0.5] == pytest.approx(0.25 * 0.5 * 0.75, rel=0.6)
    assert 0 < shares[0.5] < 0.7 * shares[1.0]


def test_ids_are_independent_of_degrees_and_classes(symmetric: Arrays) -> None:
    ids = np.arange(40_000)
    assert abs(np.corrcoef(ids, np.diff(symmetric["indptr"]))[0, 1]) < 0.02
    assert abs(np.corrcoef(ids, symmetric["labels"])[0, 1]) < 0.02
    assert (np.diff(symmetric["labels"]) == 0).mean() == pytest.approx(1 / 8, abs=0.02)


def test_label_noise_and_unlabelled_nodes() -> None:
    noisy = generate_arrays(recipe(label_noise=0.4, communities=8))
    clean = generate_arrays(recipe(communities=8))
    changed = (noisy["labels"] != clean["labels"]).mean()
    assert changed == pytest.approx(0.4 * 7 / 8, abs=0.01)
    np.testing.assert_array_equal(noisy["indices"], clean["indices"])
    few = generate_arrays(recipe(labels_outside_splits=False, train=100, val=50, test=25))
    known = np.concatenate([few["train_idx"], few["val_idx"], few["test_idx"]])
    assert (few["labels"] >= 0).sum() == 175
    assert (few["labels"][known] >= 0).all()


def accuracy(x: np.ndarray, graph: Arrays) -> float:
    """Test accuracy of a least-squares fit of one-hot labels on the training nodes."""
    x = np.hstack([x, np.ones((len(x), 1), x.dtype)])
    train, test, labels = graph["train_idx"], graph["test_idx"], graph["labels"]
    weights = np.linalg.lstsq(x[train], np.eye(8)[labels[train]], rcond=None)[0]
    return float(((x[test] @ weights).argmax(1) == labels[test]).mean())


def test_aggregated_features_predict_the_classes(symmetric: Arrays) -> None:
    x = symmetric["features"].astype(np.float64)
    sums = np.add.reduceat(x[symmetric["indices"]], symmetric["indptr"][:-1])
    alone = accuracy(x, symmetric)
    aggregated = accuracy((sums + x) / (np.diff(symmetric["indptr"])[:, None] + 1), symmetric)
    chance = 1 / 8
    assert alone > 2 * chance
    assert aggregated > 0.8
    assert aggregated > alone + 0.2
    noise = generate_arrays(recipe(signal=0))
    assert accuracy(noise["features"].astype(np.float64), noise) < 1.3 * chance


def test_features_are_exact_and_centred(symmetric: Arrays) -> None:
    x = symmetric["features"]
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x * 256, np.round(x * 256))
    assert abs(x).max() < 1.25
    assert abs(float(x.mean())) < 0.05


def test_training_nodes_concentrate_in_their_home() -> None:
    # The home is a tenth of the communities: 4,000 of 40,000 nodes.
    base = {"num_classes": 40, "communities": 40, "train_home": 0.1, "train": 2000, "val": 0}
    shares = []
    for locality in (0.0, 0.9, 1.0):
        graph = generate_arrays(recipe(train_locality=locality, test=0, **base))
        shares.append((graph["labels"][graph["train_idx"]] < 4).mean())
    assert shares[0] == pytest.approx(0.1, abs=0.02)
    assert shares[1] == pytest.approx(1000 / 1900, abs=0.05)  # odds of 10 to 1
    assert shares[2] == 1
    plain = generate_arrays(recipe(train=2000))
    biased = generate_arrays(recipe(train=2000, train_degree_bias=1))
    mean = [float(np.diff(g["indptr"])[g["train_idx"]].mean()) for g in (plain, biased)]
    assert mean[1] > 1.5 * mean[0]


def test_scale_keeps_the_mean_degree() -> None:
    products = recipe(
        num_nodes=2_449_029, num_edges=123_718_280, train=196_615, val=39_323, test=2_213_091
    )
    whole = products.scaled(1)
    assert (whole.num_nodes, whole.num_edges, whole.train) == (2_449_029, 123_718_280, 196_615)
    small = products.scaled(0.001)
    assert (small.num_nodes, small.num_edges) == (2449, 123_718)
    assert small.train + small.val + small.test == 2449
    graph = generate_arrays(products, 0.001)
    assert len(graph["indices"]) == 123_718
    double = products.scaled(2)
    assert (double.num_nodes, double.num_edges) == (4_898_058, 247_436_560)
    assert recipe(communities=400).scaled(0.1).communities == 40
    assert recipe(communities=400).scaled(0.001).communities == 8
    assert recipe(train=0.1).scaled(0.5).train == 2000
    assert recipe(train=3).scaled(0.01).train == 1


@settings(max_examples=25)
@given(
    nodes=st.integers(2, 300),
    density=st.floats(0, 1),
    symmetric=st.booleans(),
    scale=st.sampled_from([0.25, 0.5, 1.0]),
    mixing=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_number_of_edges_is_exact_for_any_density(
    nodes: int, density: float, symmetric: bool, scale: float, mixing: float
) -> None:
    edges = int(nodes * (nodes - 1) * density) // 2 * 2
    original = recipe(
        num_nodes=nodes, num_edges=edges, symmetric=symmetric, mixing=mixing, feature_dim=1
    )
    try:
        scaled = original.scaled(scale)
    except UsageError:
        assert scale < 1
        return
    graph = generate_arrays(original, scale)
    assert len(graph["indices"]) == scaled.num_edges
    dst, src = rows(graph), graph["indices"].astype(np.int64)
    assert (dst != src).all()
    assert (np.diff(dst * nodes + src) > 0).all()
    if symmetric:
        np.testing.assert_array_equal(np.sort(src * nodes + dst), dst * nodes + src)


@pytest.mark.parametrize(
    ("changes", "scale", "message"),
    [
        ({}, 0.00001, r"would have 0 node\(s\); use a larger scale"),
        ({}, 0.0002, "more than the 56 possible without parallel edges and self-loops"),
        ({"num_edges": 7}, 1, "symmetric but has an odd number of edges"),
        ({"train": 0.9}, 1, "more training, validation and test nodes than its 40000"),
        ({}, 0, "scale must be above 0"),
        ({}, 100_000, "above 2\\^31 - 1"),
    ],
)
def test_invalid_recipes_are_refused(
    changes: dict[str, object], scale: float, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        recipe(**changes).scaled(scale)


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="mixin"):
        recipe(mixin=0.1)


@pytest.mark.parametrize("ratio", [1, 1.2, 1.5, 2, 4, [9, 1.8, 1.3, 1.2]])
@pytest.mark.parametrize("cap", [0, 1, 30])
@pytest.mark.parametrize("positive", [0, 1, 1000, 2**27])
def test_degree_weights_are_bounded_and_capped(ratio: float, cap: float, positive: int) -> None:
    points = law_points(ratio, cap, positive)
    assert len(points) == 34
    assert points == sorted(points)
    assert points[0] >= 1
    assert points[-1] <= 2**30
    octaves = positive.bit_length()
    mean = sum((points[j] + points[j + 1]) / 2 ** (j + 2) for j in range(octaves))
    mean += points[octaves] / 2**octaves
    if points[0] > 100 and points[-1] < 2**30:  # otherwise rounding or the bound matters
        assert mean == pytest.approx(2**13, rel=0.02)
        assert cap == 0 or points[-1] <= 1.02 * max(cap, 1) * mean


def test_stored_arrays_equal_the_generated_ones(tmp_path: Path) -> None:
    small, final = recipe(id_dtype="int64"), tmp_path / "a~twin@0.05"
    with graph_lock(final), GraphWriter(final, {"test": 1}) as out:
        about = generate(small, 0.05, 3, out)
        out.finish(name="a~twin@0.05", seed=3, **about)
    assert verify(final).ok
    graph = open_graph(final)
    assert graph.num_classes == 8
    assert graph.meta["symmetric"] is True
    assert graph.meta["recipe"]["num_edges"] == 40_000
    for name, expected in generate_arrays(small, 0.05, 3).items():
        stored = getattr(graph, name).numpy()
        assert stored.dtype == expected.dtype
        np.testing.assert_array_equal(stored, expected)
