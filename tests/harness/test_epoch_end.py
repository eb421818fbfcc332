"""The wait until a process is quiescent after an epoch, with simulated clocks."""

from types import SimpleNamespace

import pytest

from gnnbench.harness import epoch_end


@pytest.fixture
def wait_at_10_s(monkeypatch):
    """Waits from second 10 on, after an epoch of a second; returns the end and all sleeps."""

    def wait(rate=1.0, busy_s=0.0):
        now, slept = [10.0], []

        def sleep(seconds):
            slept.append(seconds)
            now[0] += seconds

        clock = SimpleNamespace(
            perf_counter=lambda: rate * now[0],
            process_time=lambda: min(now[0], 10.0 + busy_s),
            sleep=sleep,
        )
        monkeypatch.setattr(epoch_end, "time", clock)
        monkeypatch.setattr(epoch_end, "_other_thread_runs", lambda: False)
        return epoch_end.wait_until_quiescent(rate * 9.0), slept

    return wait


def test_quiescent_process_is_polled_three_times(wait_at_10_s):
    assert wait_at_10_s() == (10.0, [epoch_end.STEP_S] * epoch_end.QUIET_STEPS)


def test_epoch_lasts_until_its_threads_end(wait_at_10_s):
    since, slept = wait_at_10_s(busy_s=0.1)
    assert since == pytest.approx(10.1, abs=2 * epoch_end.STEP_S)
    assert len(slept) == pytest.approx(0.1 / epoch_end.STEP_S + epoch_end.QUIET_STEPS, abs=2)


def test_wait_is_limited_to_the_epoch_time_plus_grace(wait_at_10_s):
    since, slept = wait_at_10_s(busy_s=1000.0)
    assert since == 10.0
    assert sum(slept) == pytest.approx(1.0 + epoch_end.GRACE_S, abs=2 * epoch_end.STEP_S)


def test_slow_clock_does_not_extend_the_wait(wait_at_10_s):
    since, slept = wait_at_10_s(rate=0.01, busy_s=1000.0)
    assert since == pytest.approx(0.1)
    assert sum(slept) == pytest.approx(0.01 + epoch_end.GRACE_S, abs=2 * epoch_end.STEP_S)
