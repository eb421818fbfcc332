"""The picks draw every subset alike: chi-square of subsets, of single and of pairwise inclusion.

The keys are fixed, so the tests are repeatable. Each states its power: the relative deviation that
it would find with 99 % probability at a false alarm of one in a million.
"""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
import torch
from ops_graphs import PICKS
from scipy import stats

from gnnbench import rng
from gnnbench.ops import sampler

ALARM = 1e-6
N = 400_000


def picked(pick: str, degree: int, fanout: int) -> npt.NDArray[np.int64]:
    """Positions drawn by N nodes of one degree, ``[N, fanout]``."""
    indptr = torch.arange(N + 1) * degree
    indices = torch.zeros(N * degree, dtype=torch.int32)
    dst = torch.arange(N, dtype=torch.int32)
    key = rng.key(11, 0, f"law {pick}")
    out_indptr, _, positions, _ = sampler.sample_hop(
        indptr, indices, dst, fanout, pick=pick, key=key, hop=2, batch=9
    )
    assert torch.equal(out_indptr, torch.arange(N + 1, dtype=torch.int32) * fanout)
    return positions.numpy().reshape(N, fanout) - indptr.numpy()[:N, None]


def included(positions: npt.NDArray[np.int64], degree: int) -> npt.NDArray[np.float32]:
    out = np.zeros((N, degree), dtype=np.float32)
    np.put_along_axis(out, positions, 1, axis=1)
    assert (out.sum(axis=1) == positions.shape[1]).all(), "a position was drawn twice"
    return out


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize(("degree", "fanout"), [(6, 3), (7, 2), (8, 5), (5, 4), (9, 1)])
def test_every_subset_is_as_likely(pick: str, degree: int, fanout: int) -> None:
    subsets = list(itertools.combinations(range(degree), fanout))
    drawn = (1 << picked(pick, degree, fanout)).sum(axis=1)
    counts = np.bincount(drawn, minlength=1 << degree)
    observed = np.array([counts[sum(1 << i for i in s)] for s in subsets])
    assert observed.sum() == N
    free = len(subsets) - 1
    critical = stats.chi2.isf(ALARM, free)
    # power: subsets off by 2 % (root mean square) would be found
    assert stats.ncx2.sf(critical, free, N * 0.02**2) > 0.99
    expected = N / len(subsets)
    assert ((observed - expected) ** 2 / expected).sum() < critical


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize(("degree", "fanout"), [(40, 15), (17, 10), (30, 5)])
def test_single_inclusion(pick: str, degree: int, fanout: int) -> None:
    counts = included(picked(pick, degree, fanout), degree).sum(axis=0, dtype=np.float64)
    p = fanout / degree
    # Inclusions of a row sum to fanout, which leaves degree - 1 directions of equal variance.
    variance = N * p * (1 - p) * degree / (degree - 1)
    critical = stats.chi2.isf(ALARM, degree - 1)
    # power: probabilities off by 2 % would be found
    off = degree * (0.02 * N * p) ** 2 / variance
    assert stats.ncx2.sf(critical, degree - 1, off) > 0.99
    assert ((counts - N * p) ** 2).sum() / variance < critical


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize(("degree", "fanout"), [(40, 15), (17, 10)])
def test_pairwise_inclusion(pick: str, degree: int, fanout: int) -> None:
    rows = included(picked(pick, degree, fanout), degree)
    together = (rows.T @ rows)[np.triu_indices(degree, 1)]  # counts stay exact in float32
    p = fanout * (fanout - 1) / (degree * (degree - 1))
    deviation = np.sqrt(N * p * (1 - p))
    limit = stats.norm.isf(ALARM / 2 / len(together))  # Bonferroni over the pairs
    # power: one pair off by 5 % would be found
    assert stats.norm.sf(limit - 0.05 * N * p / deviation) > 0.99
    assert np.abs(together - N * p).max() / deviation < limit
