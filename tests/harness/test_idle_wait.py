"""The wait for an idle machine, with simulated CPU use."""

import pytest

from gnnbench.harness import idle_wait
from gnnbench.harness.idle_wait import IdleWait, limit_s


@pytest.fixture
def machine(monkeypatch):
    """Simulates the cores used by other programs, one number per poll; the last one repeats."""

    def uses(*cores):
        now, polls = [0.0], iter(cores)
        last = cores[-1]

        def foreign(seconds):
            now[0] += seconds
            return next(polls, last)

        monkeypatch.setattr(idle_wait, "_foreign_cores", foreign)
        monkeypatch.setattr(idle_wait.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(idle_wait.contention.Programs, "add", lambda self: None)
        monkeypatch.setattr(idle_wait.contention, "named", lambda *_: "cc1plus (0.9)")
        return now

    return uses


def test_idle_machine_needs_no_wait(machine):
    now, notes = machine(0.1), []
    assert IdleWait(60.0).wait(notes.append)
    assert (now[0], notes) == (idle_wait.POLL_S, [])


def test_light_load_with_many_free_cores_needs_no_wait(machine):
    now, notes = machine(0.5), []
    assert IdleWait(60.0, free_cores=62).wait(notes.append)
    assert (now[0], notes) == (idle_wait.POLL_S, [])


def test_busy_machine_is_waited_for_and_programs_are_named(machine):
    now, notes = machine(1.5, 1.2, 0.1, 0.9, 0.0), []
    waits = IdleWait(60.0)
    assert waits.wait(notes.append)
    assert now[0] == 6 * idle_wait.POLL_S  # two polls in a row are quiet
    (note,) = notes
    assert note.startswith("other programs use 1.5 cores: cc1plus (0.9); waiting up to 60 s")
    assert "--no-wait" in note and idle_wait.NO_WAIT in note
    assert waits.left_s == 60.0 - now[0]


def test_wait_is_limited_for_the_whole_run(machine):
    now, notes = machine(1.5), []
    waits = IdleWait(10.0)
    assert not waits.wait(notes.append)
    assert now[0] == pytest.approx(10.0, abs=idle_wait.POLL_S)
    assert len(notes) == 2 and "marked (?)" in notes[1]
    assert not waits.wait(notes.append) and len(notes) == 2  # no time left


def test_no_wait_variable_disables_the_wait(monkeypatch):
    monkeypatch.delenv(idle_wait.NO_WAIT)
    assert limit_s(True) == idle_wait.LIMIT_S and limit_s(False) == idle_wait.BRIEF_S
    monkeypatch.setenv(idle_wait.NO_WAIT, "1")
    assert limit_s(True) == 0.0
    assert not IdleWait().wait(pytest.fail)


def test_own_cpu_time_is_not_foreign(monkeypatch):
    busy = iter((10.0, 12.0))
    own = iter((1.0, 1.5))
    clock = iter((0.0, 1.0))
    monkeypatch.setattr(idle_wait.machine, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr(idle_wait, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(idle_wait.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(idle_wait.time, "sleep", lambda seconds: None)
    assert idle_wait._foreign_cores(1.0) == 1.5


def test_run_waits_unless_no_wait_is_given(fakes, said, monkeypatch):
    monkeypatch.delenv(idle_wait.NO_WAIT)
    monkeypatch.setattr(idle_wait, "_foreign_cores", lambda seconds: 1.5)
    monkeypatch.setattr(idle_wait, "BRIEF_S", 0.01)
    words = ("run", "breakdown", "--profile", "smoke", "-o", "reference=fake", "--repeats", "1")
    code, _, err = said(*words, "--systems", "fake")
    assert code == 0 and "other programs use 1.5 cores" in err
    assert "the machine is still busy: times measured now are marked (?)" in err
    code, _, err = said(*words, "--systems", "fake", "--no-wait")
    assert code == 0 and "other programs" not in err
