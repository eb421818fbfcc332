"""No system that does less work is reported as correct and faster.

Attacks of the same settings share a run: each has a pair of processes of its own. One that changes
the runner or the reference fails the tests of the others, too. Attacks that pass, by
``docs/trust.md``, run with ``GNNBENCH_ALL_ATTACKS=1`` only.
"""

import os
import re
import sys

import pytest
from adversarial.catalogue import ATTACKS, HONEST, ON_GPU
from planted import register, run_systems

from gnnbench.core import registry


@pytest.fixture(scope="module")
def known(native_patch):
    register(native_patch, "adversarial", {})
    systems = HONEST | {a.name: f"adversarial.{a.where}" for a in [*ATTACKS, *ON_GPU]}
    value = ",".join(f"{name}={where}" for name, where in systems.items())
    native_patch.setenv(registry.extra_variable(registry.SYSTEM), value)


ALL = os.environ.get("GNNBENCH_ALL_ATTACKS") == "1"


class Correct(AssertionError):
    """An attack is reported as correct and faster."""


def cases(attacks):
    for attack in attacks:
        passes = (
            pytest.mark.xfail(strict=attack.always, reason=attack.passes, raises=Correct),
            pytest.mark.skipif(not ALL, reason="a known gap (docs/trust.md)"),
        )
        yield pytest.param(attack, id=attack.name, marks=passes if attack.passes else ())


def companions(attack):
    """The attacks of an attack's run, itself among them."""
    if not attack.shares_run:
        return [attack]
    same = attack.reference, attack.settings
    return [a for a in ATTACKS if a.shares_run and (a.reference, a.settings) == same]


@pytest.fixture(scope="module")
def row_of(known, tmp_path_factory):
    """``row_of(attack, device)``: the attack's row of its run."""
    rows = {}

    def measured(attack, device=""):
        if attack.name not in rows:
            together = companions(attack)
            systems = [attack.reference, attack.after, *(one.name for one in together)]
            outcome = run_systems(
                [*filter(None, systems)], tmp_path_factory.mktemp("attacks"), attack.reference,
                options=attack.settings, device=device,
            )  # fmt: skip
            found = {row["system"]: row for row in outcome.rows}
            assert found[attack.reference]["status"] == "ok", found[attack.reference]["reason"]
            rows.update((one.name, found[one.name]) for one in together)
        return rows[attack.name]

    return measured


def assert_reported(attack, row):
    print("ROW", attack.name, row["status"], row["reason"], row["doubtful"], row["ratio"])
    assert f"adversarial.{attack.module}" not in sys.modules, "the runner's"
    said = attack.reported(row)
    if not said:
        raise Correct(f"{attack.name} is {row['ratio']:.2f} times as fast, and nothing is wrong")
    assert re.search(attack.caught, said), said


@pytest.mark.parametrize("attack", [*cases(ATTACKS)])
def test_an_attack_is_not_reported_as_correct_and_faster(row_of, attack):
    assert_reported(attack, row_of(attack))


@pytest.mark.gpu
@pytest.mark.parametrize("attack", [*cases(ON_GPU)])
def test_an_attack_on_a_gpu_is_not_reported_as_correct_and_faster(row_of, attack):
    assert_reported(attack, row_of(attack, "cuda"))
