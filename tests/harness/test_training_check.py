"""Training of two systems compared by epoch, with records written by hand and random ones."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gnnbench.harness.training_check import (
    RETRAININGS,
    divergence,
    excess_doubt,
    find_excess,
    structural_fault,
)
from gnnbench.schema.samples import EpochSample

LOSSES = (4.0, 3.6, 3.3, 3.1)


def training(losses=LOSSES, moved=(0.3, 0.4), norm=5.0, nodes=1000, edges=3000, first=0):
    return [
        EpochSample(
            epoch=first + number, loss=loss, unique_nodes=nodes, sampled_edges=edges,
            param_moved=moved, param_norm=norm,
        )
        for number, loss in enumerate(losses)
    ]  # fmt: skip


def shifted(share):
    return training(tuple(loss + share * LOSSES[0] for loss in LOSSES))


def excess(system, work="equivalent", spread=(), reference=None, **options):
    """The excess of one trial, as (quantity, text); ("", "") without one."""
    result = find_excess([(reference or training(), system)], spread, work, **options)
    return (result.quantity, result.text) if result else ("", "")


@pytest.mark.parametrize(
    "work,within,beyond", [("identical", 5e-4, 2e-3), ("equivalent", 0.019, 0.04)]
)
def test_fixed_tolerances_apply_without_a_spread(work, within, beyond):
    assert excess(shifted(within), work) == ("", "")
    text = f"epoch 1 of its process has a loss of {4 + 4 * beyond:.4g} where the reference has 4"
    assert excess(shifted(beyond), work) == ("loss+", text)
    assert excess(shifted(-beyond), work)[0] == "loss-"
    assert excess(shifted(beyond), "different") == ("", "")


def test_small_difference_in_every_epoch_is_an_excess_of_the_mean():
    quantity, text = excess(shifted(0.025))
    assert quantity == "loss+"
    assert "over 4 epochs of 1 processes its losses are above the reference's by 2.5%" in text
    quantity, text = excess(training(moved=(0.27, 0.36)))
    assert quantity == "updates-"
    assert "moved 0.9 times as far as the reference's in the mean" in text


def test_spread_of_the_reference_widens_the_bounds():
    """A difference of 10 % is an excess where retrainings are within 1 %, and not within 5 %."""
    random = np.random.default_rng(0)

    def spread(deviation):
        draws = random.normal(0, deviation, (RETRAININGS, len(LOSSES)))
        return [
            training(tuple(np.array(LOSSES) + 4 * row), first=100 * nth)
            for nth, row in enumerate(draws, 1)
        ]

    assert excess(shifted(0.1), spread=spread(0.01))[0] == "loss+"
    assert excess(shifted(0.1), spread=spread(0.05)) == ("", "")
    assert excess(shifted(0.1), "identical", spread=spread(0.01))[0] == "loss+"
    assert excess(shifted(0.1), "identical", spread=spread(0.05)) == ("", "")
    # Trainings with fewer epochs than the trial do not bound its last epochs.
    short = [t[:2] for t in spread(0.05)]
    assert excess(shifted(0.1), spread=short)[0] == "loss+"


def test_spread_widens_the_bounds_of_counts():
    many = training(nodes=100_000, edges=300_000)
    fewer = training(nodes=90_000, edges=300_000)
    assert excess(training(nodes=98_000, edges=295_000), reference=many) == ("", "")
    assert excess(fewer, reference=many) == (
        "nodes-",
        "epoch 1 of its process met 90000 nodes where the reference met 100000",
    )
    spread = [
        training(nodes=100_000 + d, edges=300_000, first=9 * (1 + n))
        for n, d in enumerate((-9000, 8000, 5000, -6000, 9000, -8000, 3000, -2000))
    ]
    assert excess(fewer, reference=many, spread=spread) == ("", "")
    assert excess(fewer, reference=many, same_updates=False)[0] == "nodes-"
    assert excess(shifted(0.5), same_updates=False) == ("", "")
    # DGL and the native sampler at 256 seeds and fanouts 2/2: both are correct.
    assert excess(training(nodes=1312), reference=training(nodes=1354)) == ("", "")
    assert excess(training(nodes=1000), reference=training(nodes=1354))[0] == "nodes-"


def test_identical_work_differs_only_by_rounding_in_its_first_epoch():
    first = [replace(training()[0], param_moved=[0.29, 0.38]), *training()[1:]]
    assert excess(first, "identical")[0] == "updates-"
    later = [training()[0], *(replace(r, param_moved=[0.29, 0.36]) for r in training()[1:])]
    assert excess(later, "identical") == ("", "")
    fewer = training(nodes=999)
    assert "met 999 nodes where the reference met 1000" in structural_fault(
        training(), fewer, "identical"
    )
    assert structural_fault(training(), fewer, "equivalent") == ""
    assert "trained 1 layers where the reference has 2" in structural_fault(
        training(), training(moved=(0.5,)), "equivalent"
    )


def test_reordered_batches_may_differ_in_steps():
    """Losses and norms agree; steps may differ, but every layer must move."""
    reordered = {"work": "identical", "reordered": True}
    assert excess(shifted(0.02), **reordered) == ("", "")
    assert excess(shifted(0.04), **reordered)[0] == "loss+"
    assert excess(training(moved=(0.1, 0.6)), **reordered) == ("", "")
    quantity, text = excess(training(moved=(0.01, 0.4)), **reordered)
    assert (quantity, text[:45]) == ("updates-", "epoch 1 of its process moved layer 1 by 0.01 ")
    assert "norm 5.2" in excess(training(norm=5.2), **reordered)[1]


def test_layer_that_does_not_move_is_an_excess():
    assert excess(training(moved=(0.3, 0.401)), "identical") == ("", "")
    quantity, text = excess(training(moved=(0.0, 0.4)))
    assert quantity == "updates-"
    assert "moved layer 1 by 0 where the reference moved it by 0.3" in text
    assert "moved the parameters by 0.35 where" in excess(training(moved=(0.21, 0.28)))[1]
    # A layer without gradients, as with all-zero features, does not move in both systems.
    still = training(moved=(0.0, 0.4))
    assert excess(still, reference=still) == ("", "")


def test_only_common_epochs_are_compared():
    assert excess(training((9.0,) * 4, first=7)) == ("", "")
    assert excess(training()[:2]) == ("", "")
    assert find_excess([], [], "identical") is None
    assert find_excess([([], [])], [], "identical") is None


def test_system_without_steps_is_compared_by_losses():
    silent = training(moved=(), norm=None)
    assert excess(silent) == ("", "")
    assert excess([replace(r, loss=r.loss + 1) for r in silent])[0] == "loss+"
    without = [replace(s, loss=None) for s in silent]
    assert excess(without, reference=without) == ("", "")


@pytest.mark.parametrize("norm", [float("nan"), float("inf")])
def test_nan_and_infinity_are_an_excess_despite_any_spread(norm):
    spread = [shifted(d) for d in (-0.5, 0.5, -0.4, 0.4)]
    assert "parameters of norm" in excess(training(norm=norm), spread=spread)[1]
    assert excess(training(losses=(4.0, norm, 3.0, 2.0)), spread=spread)[0].startswith("loss")
    assert "diverged: the loss of epoch 2" in divergence(training(losses=(4.0, norm)))
    assert divergence(training()) == ""


def test_unrepeated_excesses_are_a_doubt():
    assert excess_doubt([]) == ""
    text = excess_doubt(["loss+", "updates-", "loss-"])
    assert "in 3 of its trials its losses, parameter updates differed from the reference's" in text


def test_more_trials_detect_a_smaller_difference():
    """8 % shorter steps, in epochs whose steps spread by 4 %: most single trials do not show them,
    six trials do."""
    random = np.random.default_rng(3)

    def drawn(factor, first):
        return [
            replace(record, param_moved=[factor * math.exp(random.normal(0, 0.04)), 0.0])
            for record in training(first=first)
        ]

    detected = {1: 0, 6: 0}
    for _ in range(30):
        spread = [drawn(1.0, 100 * n) for n in range(1, RETRAININGS + 1)]
        trials = [(drawn(1.0, 10 * n), drawn(0.92, 10 * n)) for n in range(6)]
        for number in detected:
            excess = find_excess(trials[:number], spread, "equivalent")
            detected[number] += excess is not None and excess.quantity == "updates-"
    assert detected[1] < 15 < detected[6]


# Measured losses of correct systems whose random draws make them diverge. Amazon
# Computers, GraphSAGE of 32 (two picks of one law); R-MAT of scale 21 (DGL and ours, GCN).
DIVERGED = [
    ((2.256, 1.83, 1.584, 1.316, 1.116, 0.975, 0.881, 0.757),
     (2.263, 1.848, 1.661, 1.469, 1.319, 1.207, 1.119, 1.014)),
    ((3.175, 2.036, 1.846, 1.651, 1.553, 1.496, 1.42, 1.315),
     (3.396, 2.063, 1.879, 1.724, 1.613, 1.525, 1.455, 1.341)),
]  # fmt: skip


def test_measured_trainings_of_correct_systems_are_within_their_spread():
    runs = [training(losses, first=50 * n) for n, losses in enumerate(sum(DIVERGED, ()))]
    for losses, other in DIVERGED:
        assert excess(training(other), reference=training(losses), spread=runs) == ("", "")


def test_false_excesses_are_rare_and_half_steps_are_detected():
    """Random walks of one distribution rarely have an excess; half the step length always."""
    random = np.random.default_rng(7)

    def walk(first, scale=1.0):
        loss, norm, records = 4.0, 5.0, []
        for epoch in range(4):
            steps = scale * np.exp(random.normal(0, 0.1, 2)) * (0.3, 0.4)
            loss -= 0.5 * scale * float(np.exp(random.normal(0, 0.3)))
            norm += 0.1 * math.hypot(*steps)
            records.append(
                EpochSample(
                    epoch=first + epoch, loss=loss, unique_nodes=1000, sampled_edges=3000,
                    param_moved=[*steps], param_norm=norm,
                )
            )  # fmt: skip
        return records

    def trial(scale):
        spread = [walk(100 * n) for n in range(1, RETRAININGS + 1)]
        return find_excess([(walk(0), walk(0, scale))], spread, "equivalent")

    assert sum(trial(1.0) is not None for _ in range(500)) < 25
    assert all(trial(0.5) is not None for _ in range(20))
