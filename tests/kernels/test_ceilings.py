"""Roofline ceiling kernels: their results prove that they read, copied and computed everything."""

import pytest
import torch
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels import ceilings

MODULUS = 2**32


def words(lines, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(2**31), 2**31, (lines * 16,), dtype=torch.int32, generator=generator)


def total(t):
    return int(t.to(torch.int64).sum()) % MODULUS


@pytest.fixture(params=[1, 2, 3])
def count(request):
    with threads(request.param):
        yield request.param


@pytest.mark.parametrize("lines", [1, 2, 7, 1000, 40_000])
def test_copy_equals_the_source(lines, count):
    source = words(lines)
    target = torch.zeros_like(source)
    ceilings.copy(source, target)
    assert torch.equal(target, source)


@pytest.mark.parametrize("lines", [1, 3, 64, 1001])
@pytest.mark.parametrize("passes", [1, 2, 5])
def test_every_pass_reads_every_word(lines, passes, count):
    source = words(lines)
    assert int(ceilings.read(source, passes)) == total(source) * passes % MODULUS


@pytest.mark.parametrize("width", [1, 3, 16, 100, 257])
def test_every_row_is_read(width, count):
    table = words(200)[: 3200 // width * width].view(-1, width)
    ids = torch.randint(0, table.shape[0], (5000,), generator=torch.Generator().manual_seed(1))
    assert int(ceilings.rows(table, ids)) == total(table[ids])


@pytest.mark.parametrize("steps", [1, 2, 1000, 1 << 20])
def test_every_multiply_add_is_executed(steps, count):
    """In every lane of every thread's registers."""
    done = int(ceilings.fma(torch.empty(0), steps))
    lanes, rest = divmod(done, steps * count)
    assert rest == 0 and lanes in (12 * 4, 12 * 8, 12 * 16)


def test_longest_chain_is_exact():
    """The sum is a multiple of the number of steps."""
    assert int(ceilings.fma(torch.empty(0), ceilings.MOST_STEPS)) % ceilings.MOST_STEPS == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ceilings.copy(words(2), words(1)), "target must be as large as source"),
        (lambda: ceilings.copy(words(2), words(2)[:31]), "target must be whole lines of 64 bytes"),
        (lambda: ceilings.read(words(2)[1:17]), "words must be whole lines"),
        (lambda: ceilings.read(words(2).float()), "words must be int32, it is float32"),
        (lambda: ceilings.read(words(2), 0), "passes must be at least 1"),
        (lambda: ceilings.rows(words(1).view(4, 4), torch.tensor([0, 4, 9])), "holds 4 at posit"),
        (lambda: ceilings.rows(words(1).view(4, 4), torch.tensor([-1])), "holds -1 at position 0"),
        (lambda: ceilings.rows(words(1), torch.tensor([0])), "words must have 2 dimension"),
        (lambda: ceilings.fma(torch.empty(0), 0), "steps must be 1 to 8388608, it is 0"),
        (lambda: ceilings.fma(torch.empty(0), 2**23 + 1), "steps must be 1 to 8388608"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()
