"""Replaced code of gnnbench is noticed; what stages and libraries do to themselves is not."""

import secrets
import time
from types import MappingProxyType

import pytest

from gnnbench.core import integrity
from gnnbench.core.errors import ReplacedError
from gnnbench.measure import timeline
from gnnbench.systems.runtime import epoch_recorder, find, phases
from gnnbench.systems.runtime.spot_checks import CheckedBatch


def other(*arguments, **keywords):
    return None


class Holder:
    def __init__(self):
        self.report, self.table, self.count = other, MappingProxyType({"epoch": other}), 0


REPLACED = {
    "a function": (phases, "probe", other),
    "a function that others import": (epoch_recorder, "block_types", other),
    "a method": (timeline.Timeline, "stop", other),
    "a class method": (CheckedBatch, "copy_of", classmethod(other)),
    "a property": (find.Named, "composed", property(other)),
    "a constant": (phases, "BATCHES", 0),
    "a class": (epoch_recorder, "CheckedBatch", Holder),
    "the clock": (time, "perf_counter", other),
    "random numbers": (secrets, "randbits", other),
    "code": (phases.probe, "__code__", other.__code__),
    "a default": (CheckedBatch._copy_of.__func__, "__defaults__", (other,)),
}


@pytest.mark.parametrize("what", REPLACED)
def test_a_replacement_is_found(monkeypatch, what):
    check = integrity.record()
    check()
    monkeypatch.setattr(*REPLACED[what])
    with pytest.raises(ReplacedError, match="was replaced in the process that is measured"):
        check()
    monkeypatch.undo()
    check()


@pytest.mark.parametrize("name", ["report", "table"])
def test_a_replacement_in_an_object_is_found(name):
    holder = Holder()
    check = integrity.record(holder)
    holder.count += 1
    check()
    setattr(holder, name, {})
    with pytest.raises(ReplacedError, match=f"'{name}' of Holder"):
        check()


def test_a_module_in_place_of_another_is_found(monkeypatch):
    check = integrity.record()
    monkeypatch.setitem(__import__("sys").modules, "gnnbench.systems.runtime.phases", time)
    with pytest.raises(ReplacedError, match=r"runtime\.phases' of sys\.modules"):
        check()


def test_derived_classes_and_new_names_are_no_replacement(monkeypatch):
    check = integrity.record()

    class Derived(timeline.Timeline):
        def stop(self):
            pass

    Derived(timeline.HostClock()).stop()
    monkeypatch.setattr(phases, "registered", other, raising=False)
    instance = timeline.Timeline(timeline.HostClock())
    instance.stop = other
    check()
