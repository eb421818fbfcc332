"""The generator and the picks, in operator and reference, equal published and pinned constants."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from gnnbench.core.errors import UsageError
from gnnbench.kernels import rng, sampler
from gnnbench.kernels.reference import rng as reference

# The same constants as native/tests/test_headers.cpp.
KEY = 0x0123456789ABCDEF
DRAWS = {
    7: "e3e33f98 c4840e25 80602a0e bdb0a323 bb301e32 85898c19 ce330c42 ae35db89",
    5_000_000_007: "11e6a367 505b0424 870212cb 7bf5bcc6 9f0ef030 ad239c92 a9b9576b 1b943b40",
}


def signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key


@pytest.mark.parametrize(("counter", "key", "answer"), reference.KNOWN_ANSWERS)
def test_philox_equals_the_published_vectors(
    counter: tuple[int, ...], key: tuple[int, int], answer: tuple[int, ...]
) -> None:
    joined = key[0] | key[1] << 32
    assert reference.philox(joined, counter) == answer  # type: ignore[arg-type]
    many = reference.philox_many(joined, np.array([counter] * 3, dtype=np.uint64))
    assert many.tolist() == [list(answer)] * 3
    # 11 rows: whole vector batches and a remainder
    out = sampler.philox(signed(joined), torch.tensor([counter] * 11))
    assert out.tolist() == [list(answer)] * 11


@given(st.integers(0, 2**63 - 1), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_philox_op_equals_the_reference(key: int, n: int, seed: int) -> None:
    counters = np.random.default_rng(seed).integers(0, 2**32, (n, 4), dtype=np.uint64)
    out = sampler.philox(key, torch.from_numpy(counters.astype(np.int64)))
    assert np.array_equal(out.numpy(), reference.philox_many(key, counters).astype(np.int64))


@pytest.mark.parametrize("vertex", DRAWS)
def test_draws_are_pinned(vertex: int) -> None:
    out = reference.draws(KEY, np.array([vertex]), 1, 3, 8)
    assert " ".join(f"{word:08x}" for word in out[0].tolist()) == DRAWS[vertex]


@pytest.mark.parametrize(
    ("counters", "message"),
    [
        (torch.zeros(2, 3, dtype=torch.int64), "counters must have 4 words per row"),
        (torch.zeros(2, 4, dtype=torch.int32), "counters must be int64"),
        (torch.zeros(4, dtype=torch.int64), "counters must have 2 dimension"),
        (torch.full((1, 4), 1 << 32), "counters must hold words of 32 bits"),
        (torch.full((1, 4), -1), "counters must hold words of 32 bits"),
    ],
)
def test_philox_refuses_bad_arguments(counters: torch.Tensor, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sampler.philox(0, counters)


def test_keys_are_pinned() -> None:
    assert rng.key(0, 0, "sample") == 0x2D594B5342F79443
    assert rng.key(0, 1, "sample") == 0x7B92B8BE628A73DB
    assert rng.key(1, 0, "sample") == 0x2D8FEED7ED57A9D9
    assert rng.key(0, 0, "order") == 0x6DA9BAA8A9503643
    assert rng.key(0, 0, "a longer purpose") == 0x11D51C86514F153C
    assert rng.key(-1, 0, "") == 0x7E021384AB0210ED


@given(st.integers(), st.integers(), st.text())
def test_keys_fit_a_signed_integer(seed: int, epoch: int, purpose: str) -> None:
    assert 0 <= rng.key(seed, epoch, purpose) < 1 << 63


def test_keys_depend_on_every_part() -> None:
    keys = {
        rng.key(s, e, p)
        for s in range(20)
        for e in range(20)
        for p in ("", "a", "b", "ab", "a\0", "sample", "a purpose of many letters")
    }
    assert len(keys) == 20 * 20 * 7


def test_permutation_is_pinned() -> None:
    key = rng.key(0, 0, "order")
    assert rng.permutation(12, key).tolist() == [7, 5, 1, 8, 11, 10, 2, 9, 6, 3, 0, 4]


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 70_001])
def test_permutation_is_complete_and_equals_the_reference(n: int) -> None:
    key = rng.key(3, 1, "order")
    order = rng.permutation(n, key)
    assert order.dtype == torch.int64
    assert torch.equal(order.sort().values, torch.arange(n))
    assert np.array_equal(order.numpy(), reference.permutation(n, key))


def test_permutation_in_numpy_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    key = rng.key(3, 1, "order")
    native = rng.permutation(70_001, key)
    monkeypatch.setenv(rng.IN_NUMPY, "1")
    monkeypatch.setattr(sampler, "philox", None)  # not called
    actual = rng.permutation(70_001, key)
    assert actual.dtype == torch.int64 and torch.equal(actual, native)


@pytest.mark.parametrize("some", [0, 1, 7, 300, 1499, 1500, 2999, 3000, 5000])
@pytest.mark.parametrize("in_numpy", [False, True])
def test_first_elements_of_a_permutation(some, in_numpy, monkeypatch) -> None:
    """For full and partial sorts, and any chunk size."""
    whole = rng.permutation(3000, KEY)
    monkeypatch.setattr(rng, "_PIECE", 1 << 9)
    if in_numpy:
        monkeypatch.setenv(rng.IN_NUMPY, "1")
    assert torch.equal(rng.permutation(3000, KEY, first=some), whole[:some])


def test_first_elements_with_too_few_small_keys(monkeypatch) -> None:
    """Artificial keys: all large, and all equal."""
    for value in (2**62, 5):
        monkeypatch.setattr(
            rng, "_sort_keys", lambda begin, end, *_, v=value: torch.full((end - begin,), v)
        )
        assert rng.permutation(3000, KEY, first=300).tolist() == list(range(300))


def test_permutations_of_two_keys_are_different() -> None:
    a, b = (rng.permutation(1000, rng.key(0, e, "order")) for e in (0, 1))
    assert (a == b).sum() < 20
