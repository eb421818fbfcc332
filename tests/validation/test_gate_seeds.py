"""The batches that the gate looks at."""

import torch

from gnnbench.validation.gate import gate_seeds


def test_the_gate_looks_at_five_consecutive_batches_and_starts_a_short_epoch_again():
    batches = [torch.tensor([nth]) for nth in range(7)]
    assert [int(seeds) for seeds in gate_seeds(batches)] == [0, 1, 2, 3, 4]
    assert [int(seeds) for seeds in gate_seeds(batches[:3])] == [0, 1, 2, 0, 1]
    assert [int(seeds) for seeds in gate_seeds(batches[:1])] == [0] * 5
