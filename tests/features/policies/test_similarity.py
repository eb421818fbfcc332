import math

import pytest
import torch

from gnnbench.features.policies.similarity import hot_similarity


def test_only_visits_to_nodes_hot_in_both_count_and_the_lesser_of_them():
    first = torch.tensor([9, 8, 1, 0, 0])
    second = torch.tensor([6, 1, 10, 0, 0])
    # Hot are nodes 0 and 1, then 2 and 0: node 0 is in both, 6 of the second's 16 visits.
    assert hot_similarity(first, second, 0.4) == pytest.approx(6 / 16)
    assert hot_similarity(second, first, 0.4) == pytest.approx(6 / 17)


def test_an_epoch_is_wholly_like_itself_and_not_at_all_like_one_elsewhere():
    visits = torch.tensor([5, 0, 3, 0])
    assert hot_similarity(visits, visits, 0.5) == 1.0
    assert hot_similarity(visits, torch.tensor([0, 4, 0, 2]), 0.5) == 0.0


def test_of_few_nodes_one_is_hot_and_of_no_visits_nothing_is_told():
    assert hot_similarity(torch.tensor([2, 1]), torch.tensor([4, 0])) == pytest.approx(0.5)
    assert math.isnan(hot_similarity(torch.tensor([2, 1]), torch.tensor([0, 0])))
