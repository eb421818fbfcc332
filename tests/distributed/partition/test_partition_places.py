import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.distributed.partition.assignment import Partition, owner_of


@pytest.fixture
def made():
    """Seven nodes of four parts, of which 1 is empty."""
    return Partition.of_owners(torch.tensor([2, 0, 3, 2, 0, 0, 3]), 4)


def test_nodes_are_numbered_by_owner(made):
    assert made.original.tolist() == [1, 4, 5, 0, 3, 2, 6]
    assert made.places.tolist() == [3, 0, 5, 4, 1, 2, 6]
    assert made.offsets.tolist() == [0, 3, 3, 5, 7]
    assert made.parts == 4 and made.num_nodes == 7


def test_owners_are_found_in_the_offsets(made):
    assert owner_of(torch.arange(7), made.offsets).tolist() == [0, 0, 0, 2, 2, 3, 3]
    assert owner_of(torch.tensor([6, 0], dtype=torch.int32), made.offsets).tolist() == [3, 0]
    assert made.owners.tolist() == [2, 0, 3, 2, 0, 0, 3]


def test_a_part_s_nodes(made):
    assert [made.nodes_of(part).tolist() for part in range(4)] == [[1, 4, 5], [], [0, 3], [2, 6]]
    assert made.own(2, torch.tensor([3, 6, 0, 1])).tolist() == [3, 0]
    assert made.own(1, torch.tensor([3, 6, 0, 1])).tolist() == []


def test_no_nodes():
    made = Partition.of_owners(torch.empty(0, dtype=torch.int64), 2)
    assert made.offsets.tolist() == [0, 0, 0] and made.owners.tolist() == []


def test_the_digest_is_of_the_places(made):
    again = Partition.of_owners(made.owners, 4, "metis", 3)
    assert again.digest() == made.digest()
    owners = made.owners
    owners[0] = 1
    assert Partition.of_owners(owners, 4).digest() != made.digest()


@pytest.mark.parametrize(
    ("owners", "parts", "says"),
    [
        ([0, 2], 2, "owners must be 0 to 1"),
        ([-1, 0], 2, "owners must be 0 to 1"),
        ([[0], [1]], 2, "one dimension"),
        ([0], 0, "at least 1 part"),
    ],
)
def test_owners_that_are_none(owners, parts, says):
    with pytest.raises(UsageError, match=says):
        Partition.of_owners(torch.tensor(owners), parts)
