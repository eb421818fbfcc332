"""The host gather: identical bits for any dtype and shape, bad arguments."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels import features
from gnnbench.kernels.reference import features as reference

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
DTYPES += [torch.int64, torch.int32, torch.uint8, torch.bool]


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.contiguous().view(torch.uint8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(50,), (50, 1), (50, 7), (50, 3, 5), (50, 700)])
@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
def test_rows_are_identical_to_the_table(
    dtype: torch.dtype, shape: tuple[int, ...], ids_dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    table = (torch.randn(shape, generator=generator) * 9).to(dtype)
    ids = torch.randint(0, 50, (333,), generator=generator).to(ids_dtype)
    out = features.gather(table, ids)
    assert out.dtype == dtype
    assert torch.equal(bits(out), bits(table[ids.long()]))
    assert torch.equal(bits(out), bits(reference.gather(table, ids)))


@pytest.mark.parametrize(
    ("dtype", "dim", "skip"),
    [
        (dtype, dim, (0, 1, 16)[(t + d) % 3])
        for t, dtype in enumerate([torch.float32, torch.float16, torch.bfloat16, torch.int8])
        for d, dim in enumerate([1, 25, 128, 301])
    ],
)
def test_results_larger_than_the_caches_are_written_by_streaming_stores(
    dtype: torch.dtype, dim: int, skip: int
) -> None:
    """``out`` has any alignment; memory around it does not change."""
    rows, n = 5000, (17 << 20) // (dim * dtype.itemsize)
    table = torch.randint(-(2**7), 2**7, (rows, dim), dtype=torch.int8).to(dtype)
    ids = torch.randint(0, rows, (n,))
    memory = torch.full((skip + n * dim + 99,), 77, dtype=dtype)
    out = memory[skip : skip + n * dim].view(n, dim)
    features.gather(table, ids, out)
    assert torch.equal(out, table[ids])
    assert (memory[:skip] == 77).all() and (memory[-99:] == 77).all()
    ids[n // 2] = rows
    ids[n // 2 + 1] = -1
    with pytest.raises(UsageError, match=f"ids holds {rows} at position {n // 2},"):
        features.gather(table, ids, out)


@given(st.integers(1, 300), st.integers(0, 70), st.integers(0, 5000), st.integers(1, 4))
def test_rows_are_gathered_to_places(rows: int, dim: int, n: int, count: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    table = torch.randn(rows, dim, generator=generator)
    ids = torch.randint(0, rows, (n,), generator=generator)
    places = torch.randperm(n + 7, generator=generator)[:n].int()
    out = torch.full((n + 7, dim), -9.0)
    expected = out.clone()
    expected[places.long()] = table[ids]
    with threads(count):
        features.gather_to(table, ids, places, out)
    assert torch.equal(out, expected)


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
def test_places_of_any_dtype_of_rows_and_wrong_ones(ids_dtype: torch.dtype) -> None:
    table = torch.arange(12, dtype=torch.int16).view(4, 3)
    ids, places = torch.tensor([3, 0, 3], dtype=ids_dtype), torch.tensor([4, 1, 0]).int()
    out = torch.full((5, 3), -1, dtype=torch.int16)
    features.gather_to(table, ids, places, out)
    assert out.tolist() == [[9, 10, 11], [0, 1, 2], [-1] * 3, [-1] * 3, [9, 10, 11]]
    places[1] = -1
    with pytest.raises(UsageError, match="places holds -1 at position 1, out has the rows 0 to 4"):
        features.gather_to(table, ids, places, out)
    with pytest.raises(UsageError, match="ids holds 4 at position 0,"):
        features.gather_to(table, ids.fill_(4), places.zero_(), out)


def test_nan_payloads_are_kept() -> None:
    table = torch.tensor([0x7FC00001, 0x7F800123, -1, 0], dtype=torch.int32).view(torch.float32)
    out = features.gather(table, torch.tensor([2, 1, 0]))
    assert out.view(torch.int32).tolist() == [-1, 0x7F800123, 0x7FC00001]


@given(st.integers(1, 3000), st.integers(0, 70), st.integers(0, 5000), st.integers(1, 4))
def test_rows_of_any_size_and_number_of_threads(rows: int, dim: int, n: int, count: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    table = torch.randn(rows, dim, generator=generator)
    ids = torch.randint(0, rows, (n,), generator=generator)
    with threads(count):
        out = features.gather(table, ids)
    assert torch.equal(out, table[ids])


def test_out_is_filled_and_returned() -> None:
    table = torch.arange(12.0).reshape(4, 3)
    out = torch.full((2, 3), -1.0)
    assert features.gather(table, torch.tensor([3, 3]), out) is out
    assert out.tolist() == [[9, 10, 11], [9, 10, 11]]


def test_empty_inputs_give_empty_results() -> None:
    table = torch.zeros(3, 2)
    assert features.gather(table, torch.empty(0, dtype=torch.int64)).shape == (0, 2)
    assert features.gather(torch.zeros(0, 2), torch.empty(0, dtype=torch.int64)).shape == (0, 2)
    assert features.gather(torch.zeros(3, 0), torch.tensor([2])).shape == (1, 0)


@pytest.mark.parametrize(
    ("table", "ids", "out", "message"),
    [
        (torch.zeros(3, 2), torch.tensor([0, 3]), None, "ids holds 3 at position 1"),
        (torch.zeros(3, 2), torch.tensor([-1]), None, "ids holds -1 at position 0"),
        (torch.zeros(0, 2), torch.tensor([0]), None, "ids holds 0 at position 0"),
        (torch.zeros(3, 2), torch.tensor([0.0]), None, "ids must be int32 or int64"),
        (torch.zeros(3, 2), torch.tensor([[0]]), None, "ids must have 1 dimension"),
        (torch.zeros(3, 4)[:, ::2], torch.tensor([0]), None, "table must be contiguous"),
        (torch.tensor(1.0), torch.tensor([0]), None, "table must have at least 1 dimension"),
        (torch.zeros(3, 2), torch.tensor([0]), torch.zeros(2, 2), "out must have one row"),
        (torch.zeros(3, 2), torch.tensor([0]), torch.zeros(1, 3), "out must have one row"),
        (torch.zeros(3, 2), torch.tensor([0]), torch.zeros(1, 2).int(), "out must be float32"),
        (torch.zeros(3, 2), torch.tensor([0]), torch.zeros(2), "out must have 2 dimension"),
    ],
)
def test_bad_arguments_are_refused(
    table: torch.Tensor, ids: torch.Tensor, out: torch.Tensor | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        features.gather(table, ids, out)


@pytest.mark.parametrize(
    ("longest", "dtype"),
    [((2**28,), torch.float32), ((2**30,), torch.uint8), ((16, 2**23), torch.float64)],
)
def test_rows_have_at_most_2_to_the_30_bytes(longest: tuple[int, ...], dtype: torch.dtype) -> None:
    """The error precedes any allocation; the tables have no rows, so they need no memory."""
    none = torch.empty(0, dtype=torch.int64)
    assert features.gather(torch.empty(0, *longest, dtype=dtype), none).shape == (0, *longest)
    for more in ((longest[0] + 1, *longest[1:]), (2**40, 1), (2**20, 2**20)):
        table = torch.empty(0, *more, dtype=dtype)
        for ids in none, torch.zeros(1 << 20, dtype=torch.int64):
            with pytest.raises(UsageError, match=r"table must have rows of at most 2\^30 bytes"):
                features.gather(table, ids)
        with pytest.raises(UsageError, match="split it by columns"):
            features.gather(table, none, table)


def test_gather_once_equals_the_reference():
    table = torch.arange(10.0).view(5, 2)
    rows, read = reference.gather_once(table, [torch.tensor([4, 0]), torch.tensor([0, 0, 2])])
    assert torch.equal(rows, table[[4, 0, 0, 0, 2]]) and read == 3
    count, out = torch.zeros(1, dtype=torch.int64), torch.empty(1, 2)
    with pytest.raises(UsageError, match="batches must be at least one, on a CUDA device"):
        features.gather_once(table, [], count, out)
    with pytest.raises(UsageError, match="on a CUDA device, which reads the table"):
        features.gather_once(table, [torch.tensor([1])], count, out)
