"""Chi-square tests of the picks: subsets, single and pairwise inclusion, weights, walks.

The keys are fixed, so the tests are repeatable. Each test states its power: the relative deviation
that it detects with 99 % probability, at a false alarm rate of one in a million.
"""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import stats
from torch import Tensor

from gnnbench.kernels import rng, sampler
from gnnbench.kernels.picks import WEIGHTED, WITHOUT_REPLACEMENT, PickSpec

ALARM = 1e-6
N = 400_000


def rows_of(degree: int) -> tuple[Tensor, Tensor]:
    """A graph of N nodes with equal degree."""
    return torch.arange(N + 1) * degree, torch.zeros(N * degree, dtype=torch.int32)


def picked(pick: str | PickSpec, degree: int, fanout: int) -> npt.NDArray[np.int64]:
    """Positions drawn by N nodes of equal degree, ``[N, fanout]``."""
    indptr, indices = rows_of(degree)
    dst = torch.arange(N, dtype=torch.int32)
    spec = PickSpec.of(pick)
    key = rng.key(11, 0, f"law {spec.name}")
    out_indptr, _, positions, _ = sampler.sample_hop(
        indptr, indices, dst, fanout, pick=spec, key=key, hop=2, batch=9
    )
    assert torch.equal(out_indptr, torch.arange(N + 1, dtype=torch.int32) * fanout)
    return positions.numpy().reshape(N, fanout) - indptr.numpy()[:N, None]


def check_frequencies(
    counts: npt.NDArray[np.int64], law: npt.NDArray[np.float64], detected: float
) -> None:
    """Chi-square test of independent draws that detects a deviation of ``detected`` (RMS)."""
    assert counts[law == 0].sum() == 0
    counts, law = counts[law > 0], law[law > 0]
    free, draws = len(law) - 1, counts.sum()
    critical = stats.chi2.isf(ALARM, free)
    assert stats.ncx2.sf(critical, free, draws * detected**2) > 0.99
    assert ((counts - draws * law) ** 2 / (draws * law)).sum() < critical


def included(positions: npt.NDArray[np.int64], degree: int) -> npt.NDArray[np.float32]:
    out = np.zeros((N, degree), dtype=np.float32)
    np.put_along_axis(out, positions, 1, axis=1)
    assert (out.sum(axis=1) == positions.shape[1]).all(), "a position was drawn twice"
    return out


# Long rows, so that a thinned reservoir draws most items from cells of several octaves.
@pytest.mark.parametrize(
    ("pick", "degree", "fanout"),
    [
        *((p, *row) for p in WITHOUT_REPLACEMENT for row in [(6, 3), (8, 5), (9, 1)]),
        *(("reservoir_thinned", *row) for row in [(16, 2), (37, 1), (110, 1)]),
    ],
)
def test_every_subset_is_equally_likely(pick: str, degree: int, fanout: int) -> None:
    subsets = np.array(list(itertools.combinations(range(degree), fanout)))
    digits = degree ** np.arange(fanout)  # so that each subset has a distinct number
    drawn = np.sort(picked(pick, degree, fanout), axis=1) @ digits
    observed = np.bincount(drawn, minlength=degree**fanout)[subsets @ digits]
    assert observed.sum() == N
    free = len(subsets) - 1
    critical = stats.chi2.isf(ALARM, free)
    # power: detects a deviation of subsets of 2 % (RMS)
    assert stats.ncx2.sf(critical, free, N * 0.02**2) > 0.99
    expected = N / len(subsets)
    assert ((observed - expected) ** 2 / expected).sum() < critical


@pytest.mark.parametrize(
    ("pick", "degree", "fanout"),
    [
        *((p, *row) for p in WITHOUT_REPLACEMENT for row in [(40, 15), (30, 5)]),
        *(("reservoir_thinned", *row) for row in [(60, 5), (150, 10)]),
    ],
)
def test_positions_are_included_with_equal_probability(pick: str, degree: int, fanout: int) -> None:
    positions = np.sort(picked(pick, degree, fanout), axis=1)
    assert (np.diff(positions, axis=1) > 0).all(), "a position was drawn twice"
    counts = np.bincount(positions.ravel(), minlength=degree).astype(np.float64)
    p = fanout / degree
    # Inclusions of a row sum to fanout, which leaves degree - 1 directions of equal variance.
    variance = N * p * (1 - p) * degree / (degree - 1)
    critical = stats.chi2.isf(ALARM, degree - 1)
    # power: detects a deviation of probabilities of 2 %
    off = degree * (0.02 * N * p) ** 2 / variance
    assert stats.ncx2.sf(critical, degree - 1, off) > 0.99
    assert ((counts - N * p) ** 2).sum() / variance < critical


@pytest.mark.parametrize(
    ("pick", "degree", "fanout", "detected"),
    [
        *((p, 17, 10, 0.05) for p in WITHOUT_REPLACEMENT),
        ("reservoir_thinned", 33, 8, 0.06),
    ],
)
def test_pairs_of_positions_are_included_with_equal_probability(
    pick: str, degree: int, fanout: int, detected: float
) -> None:
    rows = included(picked(pick, degree, fanout), degree)
    together = (rows.T @ rows)[np.triu_indices(degree, 1)]  # counts stay exact in float32
    p = fanout * (fanout - 1) / (degree * (degree - 1))
    deviation = np.sqrt(N * p * (1 - p))
    limit = stats.norm.isf(ALARM / 2 / len(together))  # Bonferroni over the pairs
    # power: detects a deviation of `detected` in one pair
    assert stats.norm.sf(limit - detected * N * p / deviation) > 0.99
    assert np.abs(together - N * p).max() / deviation < limit


@pytest.mark.parametrize(("degree", "fanout"), [(7, 4), (3, 9), (40, 2)])
def test_with_replacement_draws_entries_with_equal_probability(degree: int, fanout: int) -> None:
    positions = picked("with_replacement", degree, fanout)
    # power: detects a deviation of entries of 2 %
    counts = np.bincount(positions.ravel(), minlength=degree)
    check_frequencies(counts, np.full(degree, 1 / degree), 0.02)


def test_draws_with_replacement_are_independent() -> None:
    positions = picked("with_replacement", 7, 4)
    # power: detects a deviation of pairs of entries of 3 %
    for one, other in itertools.combinations(range(4), 2):
        pairs = np.bincount(7 * positions[:, one] + positions[:, other], minlength=49)
        check_frequencies(pairs, np.full(49, 1 / 49), 0.03)


WEIGHTS = np.array([1.0, 0.0, 3.0, 4.0, 0.5, 2.5])


def weighted(pick: str, fanout: int) -> npt.NDArray[np.int64]:
    indptr, _ = rows_of(len(WEIGHTS))
    spec = PickSpec.weighted(pick, indptr, torch.from_numpy(np.tile(WEIGHTS, N)))
    return picked(spec, len(WEIGHTS), fanout)


@pytest.mark.parametrize("pick", WEIGHTED)
def test_weighted_draws_follow_the_weights(pick: str) -> None:
    # power: detects a deviation of entries of 1 %; weight zero is never drawn
    counts = np.bincount(weighted(pick, 4).ravel(), minlength=len(WEIGHTS))
    check_frequencies(counts, WEIGHTS / WEIGHTS.sum(), 0.01)


@pytest.mark.parametrize("pick", WEIGHTED)
def test_weighted_draws_are_independent(pick: str) -> None:
    positions = weighted(pick, 3)
    law = np.outer(WEIGHTS, WEIGHTS).ravel() / WEIGHTS.sum() ** 2
    # power: detects a deviation of pairs of entries of 2.5 %
    for one, other in itertools.combinations(range(3), 2):
        pairs = len(WEIGHTS) * positions[:, one] + positions[:, other]
        check_frequencies(np.bincount(pairs, minlength=len(law)), law, 0.025)


@pytest.mark.parametrize("restart", [0.0, 0.4])
def test_walk_visits_follow_the_markov_chain(restart: float) -> None:
    # Copies of 0 <- 1 2 3, 1 <- 0 2, 2 <- 3, 3 isolated; from 0, whose neighbours take the place of
    # node 3's. Steps of a walk depend on one another, so walks are identified by their last nodes.
    chain = np.array([[0, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1]], dtype=float)
    chain /= chain.sum(axis=1, keepdims=True)
    home = np.array([1.0, 0, 0, 0])
    copies = 4 * np.arange(N // 4)
    degrees = np.tile([3, 2, 1, 0], N // 4)
    indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(degrees)]))
    indices = (np.array([1, 2, 3, 0, 2, 3]) + copies[:, None]).ravel().astype(np.int32)
    at = home
    seen = np.zeros((N // 4, 4), dtype=np.int64)
    for length in (1, 2, 3, 4):
        # Visits of a walk minus those of its shorter prefix: the node of the last step.
        out_indptr, nodes, _, visits = sampler.sample_hop(
            indptr,
            torch.from_numpy(indices),
            torch.from_numpy(copies.astype(np.int32)),
            4,
            pick=PickSpec.random_walk(1, length, restart),
            key=rng.key(11, 0, "law random_walk"),
            hop=2,
            batch=9,
        )
        rows = np.repeat(np.arange(N // 4), np.diff(out_indptr.numpy()))
        now = np.zeros_like(seen)
        now[rows, nodes.numpy() - copies[rows]] = visits.numpy()
        last = now - seen
        assert (np.sort(last, axis=1) == [0, 0, 0, 1]).all()
        seen = now
        at = (at if length == 1 else restart * home + (1 - restart) * at) @ chain
        # power: detects a deviation of nodes of 3 %
        check_frequencies(last.sum(axis=0), at, 0.03)
