"""A run that goes on is told from one that was interrupted."""

from gnnbench.analysis.run_names import is_running
from gnnbench.harness.folder import writing


def test_a_run_s_folder_is_running_while_it_is_written(tmp_path):
    assert not is_running(tmp_path)
    with writing(tmp_path):
        assert is_running(tmp_path)
        assert is_running(tmp_path)  # looking changes nothing
    assert not is_running(tmp_path)
    assert not is_running(tmp_path / "absent")
