"""The loss of an epoch: the mean over batches with labels."""

import math

import pytest
import torch

from gnnbench.systems.runtime.epoch_audit import mean_loss

LABELS = torch.tensor([0, 1, -1, -1, 2])
UNLABELLED, LABELLED = torch.tensor([2, 3]), torch.tensor([1, 2])


@pytest.mark.parametrize(
    ("losses", "seeds", "mean"),
    [
        ([1.0, 2.0], [LABELLED, LABELLED], 1.5),
        ([1.0, math.nan], [LABELLED, UNLABELLED], 1.0),
        ([math.nan, 3.0], [LABELLED, UNLABELLED], 3.0),  # in another order
        ([1.0, math.nan], [LABELLED, LABELLED], math.nan),
        ([math.nan, math.nan], [LABELLED, UNLABELLED], math.nan),
        ([math.nan, math.nan], [UNLABELLED, UNLABELLED], None),
        ([math.inf, math.nan], [LABELLED, UNLABELLED], math.inf),
    ],
)
def test_batches_without_labels_are_ignored(losses, seeds, mean):
    loss = mean_loss(losses, seeds, LABELS)
    assert loss is mean is None or loss == pytest.approx(mean, nan_ok=True)
