"""Rows read page by page, by whole lines, or from kept rows are identical to the table."""

import pytest
import torch
from gpu_graphs import assert_same

from gnnbench.core.errors import UsageError
from gnnbench.kernels.features import (  # fmt: skip
    ACCESSES,
    ELEMENTWISE,
    PAGE_ORDERED,
    gather_once,
    gather_over,
    gather_over_cache,
    gather_zero_copy,
)
from gnnbench.kernels.locked import vmm_memory
from gnnbench.kernels.lookup import IdLookup
from gnnbench.kernels.reference import features as reference

pytestmark = pytest.mark.gpu


def made(rows, width, dtype):
    """A pinned table of random bits."""
    bits = torch.Generator().manual_seed(width)
    size = rows * width * dtype.itemsize
    raw = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=bits)
    return raw.view(dtype).view(rows, width).pin_memory()


def same_bits(rows, right):
    assert rows.is_cuda and rows.dtype is right.dtype
    assert torch.equal(rows.cpu().view(torch.uint8), right.contiguous().view(torch.uint8))


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("width", [1, 3, 31, 32, 33, 100, 120, 128, 261, 602, 1025])
@pytest.mark.parametrize("access", ACCESSES)
def test_rows_equal_the_table(access, width, dtype, ids_dtype):
    table = made(5000, width, dtype)
    ids = torch.randint(0, 5000, (7777,), generator=torch.Generator().manual_seed(3))
    given = ids.to(ids_dtype).cuda()
    if access in ELEMENTWISE and width * dtype.itemsize % 4:
        with pytest.raises(UsageError, match="rows of a multiple of 4 bytes, which a thread loads"):
            gather_zero_copy(table, given, access)
        return
    rows = gather_zero_copy(table, given, access, page_bytes=1 << 14, blocks=3)
    same_bits(rows, table[ids])


def test_elementwise_access_to_tables_with_more_than_2_31_elements():
    rows, width = (1 << 22) + 2, 515
    table = vmm_memory(rows * width * 4, "cuda").view(torch.float32).view(rows, width)
    ids = torch.tensor([0, rows - 1, 1, rows - 2])
    table[ids] = torch.randn(4, width, generator=torch.Generator().manual_seed(1))
    for access in ELEMENTWISE:
        same_bits(gather_zero_copy(table, ids.cuda(), access), table[ids])


def test_elementwise_access_needs_an_aligned_table():
    table = made(9, 8, torch.float16).view(-1)[1:65].view(8, 8)
    with pytest.raises(UsageError, match="table must begin at a multiple of 4 bytes"):
        gather_zero_copy(table, torch.tensor([1], device="cuda"), "elementwise")


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("width", [1, 3, 33, 128, 261, 1025])
@pytest.mark.parametrize("num_ids", [1, 31, 32, 33, 255, 5000])
def test_any_number_of_rows_in_one_gather(num_ids, width, depth):
    """Requests smaller and larger than all blocks read at once, with and without repeated rows."""
    table, read = made(700, width, torch.float32), none_read()
    ids = torch.randint(0, 700, (num_ids,), generator=torch.Generator().manual_seed(num_ids))
    given, out = ids.cuda(), torch.empty(num_ids, width, device="cuda")
    for blocks in (1, 5):
        rows = gather_zero_copy(table, given, PAGE_ORDERED, 1 << 14, blocks, depth)
        same_bits(rows, table[ids])
        read.zero_()
        same_bits(gather_once(table, [given], read, out.fill_(7), blocks, depth), table[ids])
        assert int(read) == ids.unique().numel()


@pytest.mark.parametrize("width", [3, 128, 129])
@pytest.mark.parametrize("blocks", [1, 2, 64, 65535])
def test_grids_of_any_size(blocks, width):
    """More requests than 64 blocks read at once: rows and counts, with every kernel."""
    table, read = made(70_000, width, torch.float32), none_read()
    ids = torch.randint(0, 70_000, (99_999,), generator=torch.Generator().manual_seed(4))
    given, right = ids.cuda(), table[ids]
    same_bits(gather_zero_copy(table, given, PAGE_ORDERED, blocks=blocks), right)
    same_bits(at_once(table, [ids[:50_000], ids[50_000:]], read, blocks), right)
    assert int(read) == ids.unique().numel()
    slots, generations = (torch.zeros(70_000, dtype=torch.int32) for _ in range(2))
    slots[:700], generations[:700] = torch.arange(700, dtype=torch.int32), 1
    hits = none_read()
    rows = gather_over(
        table, table[:700].cuda(), slots.cuda(), generations.cuda(), 1, given, hits, blocks=blocks
    )
    same_bits(rows, right)
    assert int(hits) == int((ids < 700).sum())


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 8, 9, 1000])
@pytest.mark.parametrize("page_bytes", [1, 64, 4096, 1 << 40])
def test_pages_of_any_size(rows, page_bytes):
    table = made(rows, 16, torch.float32)
    ids = torch.randint(0, rows, (301,), generator=torch.Generator().manual_seed(rows))
    same_bits(gather_zero_copy(table, ids.cuda(), PAGE_ORDERED, page_bytes), table[ids])


@pytest.mark.parametrize("access", ACCESSES)
def test_empty_requests(access):
    none = torch.empty(0, dtype=torch.int64, device="cuda")
    assert gather_zero_copy(made(5, 4, torch.float32), none, access).shape == (0, 4)
    ids = torch.tensor([1, 0], device="cuda")
    assert gather_zero_copy(torch.empty(5, 0).pin_memory(), ids, access).shape == (2, 0)


def test_bad_arguments():
    table, ids = made(5, 4, torch.float32), torch.tensor([1], device="cuda")
    with pytest.raises(UsageError, match="access must be one of naive, aligned, page-ordered, el"):
        gather_zero_copy(table, ids, "sorted")
    with pytest.raises(UsageError, match="page_bytes must be at least 1"):
        gather_zero_copy(table, ids, PAGE_ORDERED, page_bytes=0)
    with pytest.raises(UsageError, match="blocks must be 1 to 65535"):
        gather_zero_copy(table, ids, PAGE_ORDERED, blocks=0)
    with pytest.raises(UsageError, match="depth must be 1, 2 or 4, it is 3"):
        gather_zero_copy(table, ids, PAGE_ORDERED, depth=3)
    with pytest.raises(UsageError, match="locked for CUDA"):
        gather_zero_copy(torch.ones(5, 4), ids, PAGE_ORDERED)


def test_too_wide_rows_are_refused():
    """Reported before memory is allocated; a table without rows needs none."""
    table, ids = torch.empty(0, 2**29), torch.tensor([0], device="cuda")
    words = r"table must have rows of at most 2\^30 bytes; split it by columns"
    for access in ACCESSES:
        with pytest.raises(UsageError, match=words):
            gather_zero_copy(table, ids, access)
    with pytest.raises(UsageError, match=words):
        gather_once(table, [ids], none_read(), torch.empty(0, 4, device="cuda"))
    slots = torch.empty(0, dtype=torch.int32, device="cuda")
    with pytest.raises(UsageError, match=words):
        gather_over(table, table.cuda(), slots, slots, 1, ids, none_read())


@pytest.mark.parametrize("width", [1, 7, 128, 261])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_reuse_of_the_last_batch(width, dtype):
    """Rows, hits and remembered slots, for hundreds of steps."""
    nodes, random = 900, torch.Generator().manual_seed(1)
    table = made(nodes, width, dtype)
    slots, generations = (torch.zeros(nodes, dtype=torch.int32, device="cuda") for _ in range(2))
    hits = torch.zeros(1, dtype=torch.int64, device="cuda")
    kept, last, right = torch.empty(0, width, dtype=dtype, device="cuda"), set(), 0
    for generation in range(1, 301):
        n = int(torch.randint(0, nodes, (1,), generator=random))
        ids = torch.randperm(nodes, generator=random)[:n]
        kept = gather_over(
            table, kept, slots, generations, generation, ids.int().cuda(), hits, remember=True
        )
        same_bits(kept, table[ids])
        right, last = right + len(last & set(ids.tolist())), set(ids.tolist())
    assert int(hits) == right
    assert_same(slots[ids.cuda()], torch.arange(n, dtype=torch.int32))


@pytest.mark.parametrize("nodes", [600, 8000])
def test_kept_rows_in_large_requests(nodes):
    """All rows of a table smaller than a page are in page order, apart from those not read."""
    table = made(nodes, 17, torch.float32)  # one warp per row: a block reads 32 rows at once
    random = torch.Generator().manual_seed(2)
    slots, generations = (torch.zeros(nodes, dtype=torch.int32) for _ in range(2))
    hot = torch.randperm(nodes, generator=random)[: nodes // 2]
    slots[hot], generations[hot] = torch.arange(nodes // 2, dtype=torch.int32), 1
    ids = torch.randperm(nodes, generator=random)
    hits = none_read()
    rows = gather_over(
        table, table[hot].cuda(), slots.cuda(), generations.cuda(), 1, ids.cuda(), hits, blocks=1
    )
    same_bits(rows, table[ids])
    assert int(hits) == nodes // 2


def test_reuse_of_a_static_cache():
    """Nothing is remembered, and ids may repeat."""
    table = made(100, 12, torch.float32)
    hot = torch.tensor([7, 3, 99])
    slots = torch.full((100,), -5, dtype=torch.int32)
    generations = torch.zeros(100, dtype=torch.int32)
    slots[hot], generations[hot] = torch.arange(3, dtype=torch.int32), 1
    slots, generations = slots.cuda(), generations.cuda()
    hits = torch.zeros(1, dtype=torch.int64, device="cuda")
    ids = torch.tensor([3, 3, 50, 99, 0, 7, 50])
    before = slots.clone(), generations.clone()
    rows = gather_over(table, table[hot].cuda(), slots, generations, 1, ids.cuda(), hits)
    same_bits(rows, table[ids])
    assert int(hits) == 4
    assert torch.equal(slots, before[0]) and torch.equal(generations, before[1])


@pytest.mark.parametrize("ratio", [0, 7, 50, 100])
@pytest.mark.parametrize("width", [1, 7, 128, 261])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_match_over_a_cache_in_a_single_pass(width, dtype, ratio):
    """Rows, hits of both levels and remembered slots, for a hundred steps."""
    nodes, random = 900, torch.Generator().manual_seed(1)
    table = made(nodes, width, dtype)
    hot = torch.randperm(nodes, generator=random)[: nodes * ratio // 100]
    known, in_cache = IdLookup(nodes, "cuda"), IdLookup(nodes, "cuda")
    in_cache.remember(hot)
    before = in_cache.slots.clone(), in_cache.generations.clone()
    cached, hits = table[hot].cuda(), torch.zeros(2, dtype=torch.int64, device="cuda")
    rows, last, expected = cached[:0], set(), [0, 0]
    for step in range(100):
        n = int(torch.randint(0, nodes, (1,), generator=random))
        ids = torch.randperm(nodes, generator=random)[:n]
        given = (ids.int() if step % 2 else ids).cuda()
        rows = gather_over_cache(table, (rows, known), (cached, in_cache), given, hits, blocks=3)
        known.remembered()
        same_bits(rows, table[ids])
        some = set(ids.tolist())
        expected[0] += len(last & some)
        expected[1] += len((some - last) & set(hot.tolist()))
        last = some
    assert hits.tolist() == expected
    assert_same(known.find(ids.cuda()), torch.arange(n, dtype=torch.int32))
    assert torch.equal(in_cache.slots, before[0])
    assert torch.equal(in_cache.generations, before[1])


def test_match_over_a_cache_refuses_bad_arguments():
    table, ids = made(5, 4, torch.float32), torch.tensor([1], device="cuda")
    known, hits = IdLookup(5, "cuda"), torch.zeros(2, dtype=torch.int64, device="cuda")
    level = torch.empty(0, 4, device="cuda"), known
    with pytest.raises(UsageError, match="hits must have 2 elements, it has 1"):
        gather_over_cache(table, level, level, ids, hits[:1])
    with pytest.raises(UsageError, match="cache must be float32, it is float16"):
        gather_over_cache(table, level, (level[0].half(), known), ids, hits)
    with pytest.raises(UsageError, match="cache must have rows of the table's shape"):
        gather_over_cache(table, level, (torch.empty(1, 3, device="cuda"), known), ids, hits)
    with pytest.raises(UsageError, match="cache_slots and cache_generations must have one entry"):
        gather_over_cache(table, level, (level[0], IdLookup(4, "cuda")), ids, hits)
    with pytest.raises(UsageError, match="ids must be on a CUDA device"):
        gather_over_cache(table, level, level, ids.cpu(), hits)


def none_read():
    return torch.zeros(1, dtype=torch.int64, device="cuda")


def at_once(table, batches, read, blocks=16):
    """Rows of batches on the host that the GPU reads once, into memory with other contents."""
    given = [b.cuda() for b in batches]
    n, width = sum(b.numel() for b in batches), table.shape[1]
    out = torch.full((n, width), 77, dtype=table.dtype, device="cuda")
    gathered = gather_once(table, given, read, out, blocks)
    assert gathered is out
    return gathered


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 3, 31, 32, 33, 100, 128, 261, 602, 1025])
def test_rows_of_several_batches_are_read_once(width, dtype, ids_dtype):
    """Rows and number of rows read equal the reference; ids occur in one, some or all batches."""
    table, draw = made(700, width, dtype), torch.Generator().manual_seed(width)
    batches = [torch.randperm(700, generator=draw)[:n].to(ids_dtype) for n in (300, 0, 699, 1, 40)]
    batches.append(torch.tensor([9, 9, 699, 9], dtype=ids_dtype))
    right, distinct = reference.gather_once(table, batches)
    read = none_read()
    for blocks in (1, 16):
        read.zero_()
        same_bits(at_once(table, batches, read, blocks), right)
        assert int(read) == distinct


@pytest.mark.parametrize("rows", [1, 2, 3, 255, 256, 257, 65536, 100_000])
def test_rows_of_tables_of_any_length_are_read_once(rows):
    """The sort uses the bits of the largest id; one id may fill the whole request."""
    table = made(rows, 4, torch.float32)
    batches = [torch.arange(rows), torch.full((3000,), rows - 1), torch.arange(rows).flip(0)]
    read = none_read()
    same_bits(at_once(table, batches, read), table[torch.cat(batches)])
    assert int(read) == rows
    at_once(table, batches[1:2], read)
    assert int(read) == rows + 1  # it grows


def test_read_once_of_empty_batches():
    empty, read = torch.empty(0, dtype=torch.int64), none_read()
    assert at_once(made(5, 4, torch.float32), [empty, empty], read).shape == (0, 4)
    assert int(read) == 0
    assert at_once(torch.empty(5, 0).pin_memory(), [torch.tensor([1, 0, 1])], read).shape == (3, 0)
    assert int(read) == 2


def test_read_once_refuses_bad_arguments():
    table, ids = made(5, 4, torch.float32), torch.tensor([1], device="cuda")
    out = torch.empty(1, 4, device="cuda")
    with pytest.raises(UsageError, match="distinct must be int64, it is int32"):
        gather_once(table, [ids], none_read().int(), out)
    with pytest.raises(UsageError, match="batches must be at least one, on a CUDA device"):
        gather_once(table, [ids, ids.cpu()], none_read(), out)
    with pytest.raises(UsageError, match="blocks must be 1 to 65535"):
        gather_once(table, [ids], none_read(), out, 0)
    with pytest.raises(UsageError, match="out must have one row"):
        gather_once(table, [ids, ids], none_read(), out)
    with pytest.raises(UsageError, match="out must be float32, it is float16"):
        gather_once(table, [ids], none_read(), out.half())
    with pytest.raises(UsageError, match="out must be on a CUDA device"):
        gather_once(table, [ids], none_read(), out.cpu())
    with pytest.raises(UsageError, match="locked for CUDA"):
        gather_once(torch.ones(5, 4), [ids], none_read(), out)
    with pytest.raises(UsageError, match="on the CPU, in pinned memory"):
        gather_once(torch.ones(5, 4, device="cuda"), [ids], none_read(), out)
