"""What is left on a stream when a system stops its clock is counted by the harness's clock."""

import pytest
from conftest import register, run_systems

pytestmark = pytest.mark.gpu

SYSTEMS = {
    "gpu-honest": "Honest", "gpu-honest-side": "HonestSideStream", "gpu-no-sync": "NoSync",
    "gpu-side-stream": "SideStream",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(patch, tmp_path_factory):
    register(patch, "gpu_cheats", SYSTEMS)
    out = tmp_path_factory.mktemp("gpu-cheats")
    outcome = run_systems(SYSTEMS, out, "gpu-honest", device="cuda")
    return {r["system"]: r for r in outcome.rows}


@pytest.mark.parametrize("system", ["gpu-honest", "gpu-honest-side"])
def test_who_waits_for_the_device_passes(rows, system):
    assert (rows[system]["status"], rows[system]["reason"]) == ("ok", "")
    assert rows[system]["outer_s"] == pytest.approx(rows[system]["epoch_wall_s"], abs=0.05)


@pytest.mark.parametrize("system", ["gpu-no-sync", "gpu-side-stream"])
def test_who_does_not_is_incorrect(rows, system):
    assert rows[system]["status"] == "incorrect"
    assert "more than it says" in rows[system]["reason"]
