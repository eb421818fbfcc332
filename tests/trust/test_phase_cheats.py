"""A phase that is reported as another, or as none, is found when the phases are run one by one."""

import pytest
from planted import assert_incorrect, register, run_systems

RECIPES = {
    "honest-serial": "HONEST", "samples-in-memory-io": "SAMPLES_IN_MEMORY_IO",
    "loads-while-sampling": "LOADS_WHILE_SAMPLING", "samples-before": "SAMPLES_BEFORE",
    "foretold": "FORETOLD", "draws-in-expect": "DRAWS_IN_EXPECT",
    "says-it-draws-ahead": "SAYS_IT_DRAWS_AHEAD",
}  # fmt: skip
SMALL = ("threads=1", "fanouts=[10, 5]", "hidden=8")
# By how far an epoch goes: the honest systems.
HONEST = {
    "compute": ("baseline", "honest-serial", "foretold"),
    "memory_io": ("baseline",),
    "sample": ("baseline", "foretold"),
}
# Likewise the cheats, and the phase that they report too short.
CHEATS = {
    "compute": {"samples-in-memory-io": "sample", "says-it-draws-ahead": "sample"},
    "memory_io": {"loads-while-sampling": "memory_io", "draws-in-expect": "sample"},
    "sample": {"samples-before": "sample", "says-it-draws-ahead": "sample"},
}  # fmt: skip


@pytest.fixture(scope="module", params=CHEATS)
def rows(request, native_patch, tmp_path_factory):
    register(native_patch, "phase_cheats", RECIPES)
    until = request.param
    options = SMALL if until == "compute" else (*SMALL[:2], f"until={until}")
    systems = [*HONEST[until], *CHEATS[until]]
    # Phases last a millisecond. The median of four rounds is none of one that waited for a core.
    out = tmp_path_factory.mktemp(until)
    outcome = run_systems(systems, out, "baseline", options=options, rounds=4)
    return until, {r["system"]: r for r in outcome.rows}


def test_honest_phases_pass_and_others_do_not(rows):
    until, by_system = rows
    for system in HONEST[until]:
        assert (by_system[system]["status"], by_system[system]["reason"]) == ("ok", "")
    for system, phase in CHEATS[until].items():
        reason = f"^its epochs report .* s of '{phase}' a batch where that takes .* s by itself"
        assert_incorrect(by_system[system], reason)
