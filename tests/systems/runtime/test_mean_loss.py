"""The loss of an epoch: the mean over the batches that have one."""

import math

import pytest
import torch

from gnnbench.systems.runtime.epoch_audit import mean_loss

LABELS = torch.tensor([0, 1, -1, -1, 2])
BLANK, WHOLE = torch.tensor([2, 3]), torch.tensor([1, 2])


@pytest.mark.parametrize(
    ("losses", "seeds", "mean"),
    [
        ([1.0, 2.0], [WHOLE, WHOLE], 1.5),
        ([1.0, math.nan], [WHOLE, BLANK], 1.0),
        ([math.nan, 3.0], [WHOLE, BLANK], 3.0),  # an order may run them otherwise
        ([1.0, math.nan], [WHOLE, WHOLE], math.nan),
        ([math.nan, math.nan], [WHOLE, BLANK], math.nan),
        ([math.nan, math.nan], [BLANK, BLANK], None),
        ([math.inf, math.nan], [WHOLE, BLANK], math.inf),
    ],
)
def test_batches_without_labels_count_for_nothing(losses, seeds, mean):
    found = mean_loss(losses, seeds, LABELS)
    assert found is mean is None or found == pytest.approx(mean, nan_ok=True)
