"""What is left on a stream is counted, by the harness's clock or by the one until all is quiet."""

import pytest
from planted import register, run_systems

pytestmark = pytest.mark.gpu

SYSTEMS = {
    "gpu-honest": "Honest", "gpu-honest-side": "HonestSideStream", "gpu-side-stream": "SideStream",
    "gpu-late-launch": "LateLaunch",
}  # fmt: skip


@pytest.fixture(scope="module", params=["compute", "sample"])
def until(request):
    return request.param


@pytest.fixture(scope="module")
def rows(patch, until, tmp_path_factory):
    register(patch, "gpu_cheats", SYSTEMS)
    out = tmp_path_factory.mktemp("gpu-cheats")
    outcome = run_systems(SYSTEMS, out, "gpu-honest", (f"until={until}",), device="cuda")
    return {r["system"]: r for r in outcome.rows}


@pytest.mark.parametrize("system", ["gpu-honest", "gpu-honest-side"])
def test_who_works_in_its_phases_passes(rows, system):
    assert (rows[system]["status"], rows[system]["reason"]) == ("ok", "")
    assert "in no phase" not in rows[system]["doubtful"]


def test_work_on_a_side_stream_is_in_the_wall_time_and_in_no_phase(rows, until):
    row = rows["gpu-side-stream"]
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["epoch_wall_s"] > 0.5 * rows["gpu-honest"]["epoch_wall_s"]
    assert ("are in no phase" in row["doubtful"]) == (until == "sample")


def test_work_that_begins_when_the_epoch_has_ended_is_incorrect(rows):
    assert rows["gpu-late-launch"]["status"] == "incorrect"
    assert "work goes on after they have ended" in rows["gpu-late-launch"]["reason"]
