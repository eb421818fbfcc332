"""Two lives held against each other, epoch by epoch, on samples written out."""

import pytest

from gnnbench.runner.losses import losses_fault, trend_fault

LOSSES = (4.0, 3.6, 3.3, 3.1)


def life(losses=LOSSES, moved=(0.3, 0.4), norm=5.0, nodes=1000, first=0):
    return [
        {
            "epoch": first + number, "loss": loss, "unique_nodes": nodes,
            "param_moved": list(moved), "param_norm": norm,
        }
        for number, loss in enumerate(losses)
    ]  # fmt: skip


def near(share):
    return life(tuple(loss + share * LOSSES[0] for loss in LOSSES))


@pytest.mark.parametrize(
    "work,right,wrong", [("identical", 5e-4, 2e-3), ("equivalent", 0.02, 0.04)]
)
def test_losses_agree_to_a_share_of_the_first(work, right, wrong):
    assert losses_fault(life(), near(right), work) == ""
    fault = losses_fault(life(), near(wrong), work)
    assert f"has a loss of {4 + 4 * wrong:.4g} where the reference has 4, but" in fault
    assert losses_fault(life(), near(-wrong), work) != ""
    assert losses_fault(life(), near(wrong), "different") == ""


# Three layers, labels drawn at random, FastSample beside the baseline: the first and ninth
# epoch: loss and steps.
APART = (
    ((2.7709, (1.8519, 1.0017, 0.5851)), (2.59992, (0.9803, 0.3479, 0.2574))),
    ((2.7709, (1.8517, 1.0022, 0.5857)), (2.59882, (0.9871, 0.457, 0.3163))),
)


def test_sums_in_another_order_lead_identical_work_apart():
    """After its first epoch, in which it must agree; half of a layer is missed then, too."""
    one, other = (life(tuple(loss for loss, _ in told)) for told in APART)
    for mine, told in ((one, APART[0]), (other, APART[1])):
        for record, (_, moved) in zip(mine, told, strict=True):
            record["param_moved"] = moved
    assert losses_fault(one, other, "identical") == ""
    assert losses_fault(other, one, "identical") == ""
    first = [{**other[0], "param_moved": (1.78, 0.9, 0.55)}, *other[1:]]
    assert "epoch 1 of its process moved the param" in losses_fault(one, first, "identical")
    half = [other[0], {**other[1], "param_moved": (0.98, 0.17, 0.25)}]
    assert "epoch 2 of its process moved layer 2 by 0.17" in losses_fault(one, half, "identical")
    behind = [other[0], {**other[1], "loss": 2.62}]
    assert "has a loss of 2.62" in losses_fault(one, behind, "identical")


def test_the_same_batches_in_another_order():
    """Losses, norms and nodes agree; an epoch's step may differ, but no layer stands still."""
    assert losses_fault(life(), near(0.02), "identical", reordered=True) == ""
    assert "has a loss" in losses_fault(life(), near(0.04), "identical", reordered=True)
    assert "met 999 nodes" in losses_fault(life(), life(nodes=999), "identical", reordered=True)
    assert losses_fault(life(), near(0.04), "different", reordered=True) == ""
    assert losses_fault(life(), life(moved=(0.1, 0.6)), "identical", reordered=True) == ""
    still = losses_fault(life(), life(moved=(0.01, 0.4)), "identical", reordered=True)
    assert "moved layer 1 by 0.01 where" in still
    assert "norm 5.2" in losses_fault(life(), life(norm=5.2), "identical", reordered=True)


def test_in_a_whole_training_other_draws_need_only_keep_pace():
    """Not where draws are the same; two epochs behind may be, three not."""
    behind = life((4.0, 3.9, 3.5, 3.3))
    assert "has a loss of 3.9" in losses_fault(life(), behind, "equivalent")
    assert losses_fault(life(), behind, "equivalent", followed=True) == ""
    assert "has a loss of 3.9" in losses_fault(life(), behind, "identical", followed=True)
    far = life((4.0, 3.95, 3.95, 3.95))
    said = losses_fault(life(), far, "equivalent", followed=True)
    assert said.startswith("epoch 4 of its process has a loss of 3.95 where the reference has 3.1")
    ahead = life((4.0, 2.7, 2.6, 2.5))
    assert "has a loss of 2.7" in losses_fault(life(), ahead, "equivalent", followed=True)
    for first, fault in ((4.7, False), (4.9, True)):
        found = losses_fault(life(), life((first, *LOSSES[1:])), "equivalent", followed=True)
        assert ("epoch 1 of its process has a loss" in found) == fault == bool(found)
    for moved, fault in (((0.1, 0.6), False), ((0.08, 0.4), True)):
        told = [life()[0], *life(moved=moved)[1:]]
        found = losses_fault(life(), told, "equivalent", followed=True)
        assert ("moved layer 1 by 0.08" in found) == fault == bool(found)


# Losses by epoch of two picks of one law on Amazon Computers (GraphSAGE of 32, batches of 1024,
# fanouts 10/5, rate 0.003 and 0.01): right systems that chance leads apart.
MEASURED = [
    ((2.256, 1.83, 1.584, 1.316, 1.116, 0.975, 0.881, 0.757),
     (2.263, 1.848, 1.661, 1.469, 1.319, 1.207, 1.119, 1.014)),
    ((2.378, 1.772, 1.536, 1.348, 1.157, 1.006, 0.921, 0.821),
     (2.401, 1.788, 1.581, 1.432, 1.289, 1.189, 1.125, 1.045)),
    ((2.29, 1.668, 1.4, 1.205, 1.068, 0.922, 0.833, 0.74),
     (2.365, 1.675, 1.341, 1.081, 0.954, 0.792, 0.729, 0.648)),
    ((3.175, 2.036, 1.846, 1.651, 1.553, 1.496, 1.42, 1.315),
     (3.396, 2.063, 1.879, 1.724, 1.613, 1.525, 1.455, 1.341)),
]  # fmt: skip


@pytest.mark.parametrize("pair", MEASURED)
def test_right_systems_whose_draws_lead_them_apart_keep_pace(pair):
    one, other = map(life, pair)
    assert losses_fault(one, other, "equivalent", followed=True) == ""
    assert losses_fault(other, one, "equivalent", followed=True) == ""
    assert losses_fault(one, other, "identical", followed=True) != ""


def test_half_of_the_updates_do_not_keep_pace():
    """Measured beside the first of them: its every second update left out after the first epoch,
    the steps of its layers from 0.31 times the reference's on, its norm 2.8 % apart."""
    half = life((2.263, 1.899, 1.819, 1.697, 1.609, 1.527, 1.444, 1.358))
    found = losses_fault(life(MEASURED[0][0]), half, "equivalent", followed=True)
    assert "has a loss of 1.527 where" in found


# Norms of the parameters and steps of the layers after each of five epochs: DGL and ours, GCN on
# R-MAT of scale 21, and GAT, whose loss was that of guessing. Both right; draws lead them apart.
LED = [
    (((12.702, (3.253, 2.091, 0.441)), (13.389, (1.811, 1.809, 0.599)),
      (13.659, (1.111, 0.950, 0.206)), (14.014, (0.979, 0.987, 0.223)),
      (14.460, (1.052, 1.172, 0.201))),
     ((12.715, (3.230, 2.162, 0.449)), (13.384, (1.779, 1.746, 0.563)),
      (13.730, (1.103, 1.203, 0.407)), (14.109, (1.077, 1.295, 0.390)),
      (14.725, (1.095, 1.536, 0.406)))),
    (((13.411, (1.294, 0.913, 0.169)), (13.416, (0.487, 0.246, 0.062)),
      (13.420, (0.524, 0.236, 0.077)), (13.427, (0.444, 0.183, 0.031)),
      (13.432, (0.510, 0.203, 0.058))),
     ((13.402, (1.294, 0.870, 0.167)), (13.401, (0.450, 0.216, 0.031)),
      (13.400, (0.464, 0.272, 0.054)), (13.405, (0.405, 0.198, 0.032)),
      (13.407, (0.395, 0.183, 0.040)))),
]  # fmt: skip


@pytest.mark.parametrize("pair", LED)
def test_steps_after_the_first_epoch_are_what_chance_makes_of_them(pair):
    def lived(epochs):
        told = zip(life((0.67,) * len(epochs)), epochs, strict=True)
        return [{**one, "param_norm": norm, "param_moved": moved} for one, (norm, moved) in told]

    one, other = map(lived, pair)
    assert losses_fault(one, other, "equivalent") == ""
    assert losses_fault(other, one, "equivalent") == ""
    assert losses_fault(one, other, "identical") != ""
    still = [{**e, "param_moved": (*e["param_moved"][:2], 0.0)} for e in other]
    assert "moved layer 3 by 0 " in losses_fault(one, other[:1] + still[1:], "equivalent")
    twice = [{**e, "param_moved": [2 * m for m in e["param_moved"]]} for e in one]
    assert "moved the parameters" in losses_fault(one, one[:1] + twice[1:], "equivalent")


# Losses of seven epochs of four batches each: DGL by its own sampler and by FastSample's draws.
QUICK = (
    (3.8104, 3.0915, 2.2474, 1.5552, 1.0193, 0.6434, 0.4165),
    (3.8581, 3.1595, 2.3843, 1.7015, 1.1481, 0.7753, 0.5195),
)


def test_where_much_is_learned_draws_lead_a_quarter_of_an_epoch_apart():
    one, other = map(life, QUICK)
    assert losses_fault(one, other, "equivalent") == losses_fault(other, one, "equivalent") == ""
    assert losses_fault(one[:3], other[:3], "equivalent") == ""  # the last has nothing after it
    # Half of the updates left out: behind by half an epoch, one, one and a half ...
    half = [QUICK[0][0], (3.8104 + 3.0915) / 2, 3.0915, (3.0915 + 2.2474) / 2, 2.2474]
    assert "epoch 2 of its process has a loss of" in losses_fault(one, life(half), "equivalent")
    ahead = [QUICK[0][0], *QUICK[0][2:]]
    assert "has a loss of 2.247 where" in losses_fault(one, life(ahead), "equivalent")
    # Where nothing is learned a share of the first loss is all that may be.
    flat = life((4.0,) * 4)
    assert losses_fault(flat, life((4.0, 4.0, 4.17, 4.0)), "equivalent") != ""


def test_nodes_agree():
    many, fewer = life(nodes=100_000), life(nodes=98_000)
    assert losses_fault(many, fewer, "equivalent") == ""
    assert "met 999 nodes where the reference met 1000" in losses_fault(
        life(), life(nodes=999), "identical"
    )
    assert "met 96000 nodes" in losses_fault(many, life(nodes=96_000), "equivalent")


def test_few_seeds_may_draw_further_apart():
    """Measured: DGL beside ours at 256 seeds of fanouts 2/2, both right."""
    assert losses_fault(life(nodes=1354), life(nodes=1312), "equivalent") == ""
    assert "met 1000 nodes" in losses_fault(life(nodes=1354), life(nodes=1000), "equivalent")


def test_every_layer_is_trained():
    assert losses_fault(life(), life(moved=(0.3, 0.401)), "identical") == ""
    assert "moved layer 1 by 0 where the reference moved it by 0.3" in losses_fault(
        life(), life(moved=(0.0, 0.4)), "equivalent"
    )
    assert "moved the parameters by 0.35 where the reference moved them by 0.5" in losses_fault(
        life(), life(moved=(0.21, 0.28)), "equivalent"
    )
    assert "trained 1 layers where the reference has 2" in losses_fault(
        life(), life(moved=(0.5,)), "equivalent"
    )
    # A layer without gradients, as of features that are all zero, stands still on both sides.
    still = life(moved=(0.0, 0.4))
    assert losses_fault(still, still, "identical") == ""


def test_the_norm_of_the_parameters_agrees():
    assert "norm 5.2 where the reference has 5" in losses_fault(
        life(), life(norm=5.2), "equivalent"
    )


def test_only_the_same_epochs_are_held_against_each_other():
    assert losses_fault(life(), life((9.0,) * 4, first=7), "identical") == ""
    assert losses_fault(life(), life()[:2], "identical") == ""
    assert losses_fault([], [], "identical") == ""


def test_a_system_that_tells_no_steps_is_judged_by_its_losses():
    silent = life(moved=(), norm=None)
    assert losses_fault(life(), silent, "identical") == ""
    without = [{**s, "loss": None} for s in silent]
    assert losses_fault(without, without, "identical") == ""


@pytest.mark.parametrize("norm", [None, float("nan"), float("inf")])
def test_what_is_no_number_is_a_fault(norm):
    said = "tells no finite norm of the parameters and of their steps"
    assert said in losses_fault(life(), life(norm=norm), "identical")
    assert said in losses_fault(life(), life(moved=(0.3, float("nan"))), "equivalent")


# R-MAT of scale 27, epochs of 151 batches, DGL prefetched and ours in two lives: loss, steps, norm.
LONG = (
    (
        (0.63840, (5.053, 5.103, 1.383), 14.424), (0.61621, (3.732, 5.532, 1.362), 17.910),
        (0.60465, (3.194, 3.868, 0.803), 20.651),
    ),
    (
        (0.63879, (5.059, 5.282, 1.463), 14.464), (0.61543, (3.704, 6.347, 1.652), 18.289),
        (0.60368, (3.243, 4.164, 0.809), 21.186),
    ),
    (
        (0.63850, (4.862, 5.259, 1.453), 14.485), (0.61758, (3.639, 5.566, 1.237), 17.782),
        (0.60544, (3.186, 4.543, 1.101), 20.738),
    ),
    (
        (0.63800, (5.017, 5.938, 1.770), 14.858), (0.61363, (3.718, 6.171, 1.526), 18.764),
        (0.60196, (3.223, 3.966, 0.801), 21.437),
    ),
)  # fmt: skip


def test_draws_lead_norms_of_long_epochs_apart_by_a_share_of_their_steps():
    lives = [
        [
            {
                "epoch": nth, "loss": loss, "unique_nodes": 1000, "param_moved": moved,
                "param_norm": norm,
            }
            for nth, (loss, moved, norm) in enumerate(told)
        ]
        for told in LONG
    ]  # fmt: skip
    for one in lives:
        for other in lives:
            assert losses_fault(one, other, "equivalent") == ""
    assert trend_fault([(lives[0], lives[1]), (lives[2], lives[3])], "equivalent") == ""
    decayed = [lives[0][0], {**lives[0][1], "param_norm": 16.0}]
    assert "left parameters of norm 16 where" in losses_fault(lives[0], decayed, "equivalent")


def lagging(share, draws=(0.0, 0.0, 0.0, 0.0), step=0.5):
    """Behind by ``share`` of an epoch for each one trained after the first, and by chance."""
    found = life()
    for nth in range(1, len(found)):
        lost = share * nth * (LOSSES[nth - 1] - LOSSES[nth])
        found[nth]["loss"] += lost + draws[nth]
        found[nth]["param_moved"] = [0.6 * step, 0.8 * step]
    return found


def test_who_falls_behind_in_every_life_is_found_by_all_of_them():
    chance = [(0.0, 0.04, -0.06, 0.05), (0.0, -0.05, 0.03, -0.04), (0.0, 0.05, 0.05, 0.06)]
    right = [(life(), lagging(0.0, draws)) for draws in chance]
    assert trend_fault(right, "equivalent") == ""
    for share, way in ((0.16, "behind"), (-0.16, "ahead of")):
        lives = [(life(), lagging(share, draws)) for draws in chance]
        assert all(losses_fault(*one, "equivalent") == "" for one in lives)
        fault = trend_fault(lives, "equivalent")
        assert f"over 9 epochs of 3 processes its losses are {way} the reference's by" in fault
        assert trend_fault(lives[:1], "equivalent") == ""  # one life's chance has a sign
        assert trend_fault(lives, "identical") == trend_fault(lives, "different") == ""
        assert trend_fault(lives, "equivalent", reordered=True) == ""
        assert trend_fault(lives, "equivalent", followed=True) == ""


def test_steps_are_as_long_in_the_median_of_all_lives():
    short = [(life(), lagging(0.0, step=0.35)) for _ in range(5)]
    assert all(losses_fault(*one, "equivalent") == "" for one in short)
    assert "its parameters moved 0.7 times as far" in trend_fault(short, "equivalent")
    assert trend_fault([(life(), lagging(0.0, step=0.45))] * 5, "equivalent") == ""


def test_lives_that_saw_other_epochs_or_told_nothing_are_left_out():
    other = life(first=7)
    silent = [{**record, "loss": None} for record in life()]
    assert (
        trend_fault([(life(), other), (life(), silent), (life(), life()[:1])], "equivalent") == ""
    )
