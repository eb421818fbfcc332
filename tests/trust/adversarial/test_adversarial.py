"""No system that does less work is reported as correct and faster.

Attacks that are, by ``docs/trust.md``, run with ``GNNBENCH_ALL_ATTACKS=1`` only.
"""

import os
import re
import sys

import pytest
from adversarial.catalogue import ATTACKS, HONEST, ON_GPU
from planted import register, run_systems

from gnnbench.core import registry
from gnnbench.kernels.library import native_info


@pytest.fixture(scope="module")
def known(patch):
    if not native_info()["cpu_built"]:
        pytest.skip("the native library is not built; run 'make install'")
    register(patch, "adversarial", {})
    systems = HONEST | {a.name: f"adversarial.{a.where}" for a in [*ATTACKS, *ON_GPU]}
    value = ",".join(f"{name}={where}" for name, where in systems.items())
    patch.setenv(registry.extra_variable(registry.SYSTEM), value)


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


def assert_reported(attack, out, device=""):
    systems = [attack.reference, *filter(None, [attack.after]), attack.name]
    outcome = run_systems(systems, out, systems[0], options=attack.settings, device=device)
    (row,) = [row for row in outcome.rows if row["system"] == attack.name]
    print("ROW", attack.name, row["status"], row["reason"], row["doubtful"], row["ratio"])
    assert f"adversarial.{attack.where.partition(':')[0]}" not in sys.modules, "the runner's"
    said = attack.reported(row)
    if not said:
        raise Correct(f"{attack.name} is {row['ratio']:.2f} times as fast, and nothing is wrong")
    assert re.search(attack.caught, said), said


@pytest.mark.parametrize("attack", [*cases(ATTACKS)])
def test_an_attack_is_not_reported_as_correct_and_faster(known, attack, tmp_path):
    assert_reported(attack, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("attack", [*cases(ON_GPU)])
def test_an_attack_on_a_gpu_is_not_reported_as_correct_and_faster(known, attack, tmp_path):
    assert_reported(attack, tmp_path, "cuda")
