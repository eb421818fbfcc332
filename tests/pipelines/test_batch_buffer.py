"""Batch buffers that two processes share: layout, growth and cleanup."""

import pickle
from pathlib import Path

import pytest
import torch

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.distributed.remote_failure import RemoteFailure
from gnnbench.pipelines.batch_buffer import ALIGN, ConsumerBuffer, ProducerBuffer, TensorSlice

CPU = torch.device("cpu")


def batch_of(nodes, number=4):
    """Two hops from seeds 7 and 9; the outer block's nodes are a prefix of the inner block's."""
    return MiniBatch(
        torch.tensor([7, 9]),
        [
            Block(
                torch.tensor([0, 1, 1, 2], dtype=torch.int32),
                torch.tensor([3, 0], dtype=torch.int32),
                nodes,
                3,
                positions=torch.tensor([40, 41]),
            ),
            Block(
                torch.tensor([0, 0, 1], dtype=torch.int32),
                torch.tensor([2], dtype=torch.int32),
                nodes[:3],
                2,
                weights=torch.tensor([2.0]),
            ),
        ],
        3,
        {"edges": torch.tensor([5, 6, 7], dtype=torch.int16)},
        "new",
        number,
    )


@pytest.fixture
def nodes():
    return torch.tensor([7, 9, 1, 2], dtype=torch.int32)


@pytest.fixture
def rows():
    return torch.arange(4 * 33, dtype=torch.float32).reshape(4, 33)


@pytest.fixture
def out():
    """A producer's buffer; its memory is freed at exit, while this process continues."""
    buffer = ProducerBuffer(1, CPU)
    yield buffer
    for memory in (buffer._memory, *buffer._replaced):
        memory.close()


def test_layout_of_the_tensors_of_a_batch(out, nodes, rows):
    word = out.write(batch_of(nodes), rows)
    described, int32 = word.batch, torch.int32
    assert described.seeds == TensorSlice(0, torch.int64, (2,))
    inner, outer = described.blocks
    assert (inner.indptr, inner.indices) == (
        TensorSlice(256, int32, (4,)),
        TensorSlice(512, int32, (2,)),
    )
    assert (inner.src_nodes, inner.positions) == (
        TensorSlice(768, int32, (4,)),
        TensorSlice(1024, torch.int64, (2,)),
    )
    assert (outer.indptr, outer.indices) == (
        TensorSlice(1280, int32, (3,)),
        TensorSlice(1536, int32, (1,)),
    )
    assert (outer.src_nodes, outer.weights) == (
        TensorSlice(768, int32, (3,)),
        TensorSlice(1792, torch.float32, (1,)),
    )
    assert described.extra == {"edges": TensorSlice(2048, torch.int16, (3,))}
    assert word.rows == TensorSlice(2304, torch.float32, (4, 33))
    assert inner.weights is outer.positions is None
    assert (described.sampled_edges, described.frontier, described.number) == (3, "new", 4)
    assert (word.buffer, word.size, out.grown, out.free) == (1, out.size, 1, False)
    assert out.written == 2304 + 3 * ALIGN  # of rows of 528 bytes


def test_batch_round_trip(out, nodes, rows):
    sent = batch_of(nodes)
    word = pickle.loads(pickle.dumps(out.write(sent, rows)))
    buffer = ConsumerBuffer(CPU)
    buffer.open(word)
    batch, read = buffer.batch(word)
    assert torch.equal(read, rows)
    for tensor, right in zip(batch.tensors(), sent.tensors(), strict=True):
        assert tensor.dtype == right.dtype and torch.equal(tensor, right)
    assert torch.equal(batch.blocks[0].positions, sent.blocks[0].positions)
    assert torch.equal(batch.blocks[1].weights, sent.blocks[1].weights)
    assert batch.blocks[0].weights is batch.blocks[1].positions is None
    assert torch.equal(batch.extra["edges"], sent.extra["edges"])
    assert [block.num_dst for block in batch.blocks] == [3, 2]
    assert [(h[0].tolist(), h[1]) for h in batch.sizes().hops] == [([7, 9], 1), ([1], 1)]


def test_ids_are_copied_and_rows_are_views_of_the_buffer(out, nodes, rows):
    """The audit keeps ids of every batch; rows are valid until the next write."""
    buffer = ConsumerBuffer(CPU)
    word = out.write(batch_of(nodes), rows)
    buffer.open(word)
    batch, read = buffer.batch(word)
    out.done(buffer.done(1))
    again = out.write(batch_of(nodes + 50), rows + 1)
    assert again.address is None and out.grown == 1
    assert torch.equal(read, rows + 1)
    assert batch.seeds.tolist() == [7, 9]
    assert [b.src_nodes.tolist() for b in batch.blocks] == [[7, 9, 1, 2], [7, 9, 1]]
    assert batch.blocks[1].src_nodes.data_ptr() == batch.blocks[0].src_nodes.data_ptr()


def test_rows_are_written_where_the_consumer_reads_them(out, nodes, rows):
    """The loader gets the memory that the consumer maps; what it copies is counted."""
    table, written = torch.zeros(9, 33), []

    def load_into(batch, place):
        assert batch.input_nodes is nodes and place.shape == (4, 33)
        written.append(place.copy_(rows + len(written)))
        return len(written) == 1

    buffer = ConsumerBuffer(CPU)
    for nth in range(2):
        word = out.gather(batch_of(nodes), table, load_into)
        buffer.open(word)
        read = buffer.batch(word)[1]
        assert torch.equal(read, rows + nth)
        assert (word.used, word.rows) == (2304 + 3 * ALIGN, TensorSlice(2304, rows.dtype, (4, 33)))
        assert out.copied == nth * 4 * 33 * 4
        out.done(buffer.done(1))
    written[1].fill_(7.0)
    assert torch.equal(read, torch.full((4, 33), 7.0))


def test_memory_of_rows_that_could_not_be_loaded_is_announced_with_the_next_batch(out, nodes, rows):
    def fails(batch, place):
        raise MemoryError

    with pytest.raises(MemoryError):
        out.gather(batch_of(nodes), rows, fails)
    word = out.write(batch_of(nodes), rows)
    assert out.grown == 1 and word.address == out._memory.address
    out.done(ConsumerBuffer(CPU).done(1))
    assert out.write(batch_of(nodes), None).address is None


def test_larger_batch_replaces_the_memory(out, nodes, rows):
    buffer = ConsumerBuffer(CPU)
    first = out.write(batch_of(nodes), rows)
    buffer.open(first)
    out.done(buffer.done(1))
    wide = torch.rand(4, 9000)
    word = out.write(batch_of(nodes), wide)
    assert out.grown == 2 and word.size >= (2304 + wide.numel() * 4) * 5 // 4
    assert Path(first.address).exists()  # the consumer may not know of it yet
    buffer.open(word)
    assert torch.equal(buffer.batch(word)[1], wide)
    out.done(buffer.done(1))
    assert not Path(first.address).exists() and Path(word.address).exists()


def test_batch_without_rows_and_edges(out):
    none = torch.empty(0, dtype=torch.int32)
    empty = MiniBatch(none, [Block(torch.zeros(1, dtype=torch.int32), none, none, 0)], 0)
    word = out.write(empty, torch.empty(0, 8))
    buffer = ConsumerBuffer(CPU)
    buffer.open(word)
    batch, rows = buffer.batch(word)
    assert rows.shape == (0, 8) and batch.blocks[0].indptr.tolist() == [0]
    assert batch.input_nodes.dtype == torch.int32 and batch.input_nodes.numel() == 0


class Odd(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} {other}")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (MemoryError("no memory"), MemoryError, "no memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), torch.OutOfMemoryError, "CUDA out of"),
        (Odd("a", "b"), RuntimeError, "Odd: a b"),
    ],
)
def test_an_error_keeps_its_type_and_text(error, kind, text):
    received = pickle.loads(pickle.dumps(RemoteFailure.by(error))).exception()
    assert type(received) is kind and text in str(received)
