"""How long is waited for an epoch's rest, by clocks that are right and one that is not."""

from types import SimpleNamespace

import pytest

from gnnbench.harness import epoch_end


@pytest.fixture
def at(monkeypatch):
    """A wait from second 10 on, after an epoch of a second: what it says, and its sleeps."""

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


def test_what_is_quiet_is_waited_for_three_steps(at):
    assert at() == (10.0, [epoch_end.STEP_S] * epoch_end.QUIET_STEPS)


def test_an_epoch_lasts_until_its_threads_end(at):
    since, slept = at(busy_s=0.1)
    assert since == pytest.approx(10.1, abs=2 * epoch_end.STEP_S)
    assert len(slept) == pytest.approx(0.1 / epoch_end.STEP_S + epoch_end.QUIET_STEPS, abs=2)


def test_who_never_rests_is_waited_for_as_long_as_the_epoch_and_half_a_second(at):
    since, slept = at(busy_s=1000.0)
    assert since == 10.0
    assert sum(slept) == pytest.approx(1.0 + epoch_end.GRACE_S, abs=2 * epoch_end.STEP_S)


def test_a_slowed_clock_does_not_keep_a_run_waiting(at):
    since, slept = at(rate=0.01, busy_s=1000.0)
    assert since == pytest.approx(0.1)
    assert sum(slept) == pytest.approx(0.01 + epoch_end.GRACE_S, abs=2 * epoch_end.STEP_S)
