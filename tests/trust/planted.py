"""Runs of planted cheats: through the same request, campaign and workers as any other run."""

import os
import re
from pathlib import Path

HERE = Path(__file__).parent


def register(monkeypatch, module, names, **stages):
    """Register objects of a module of this folder as systems, here and in workers.

    ``stages``: the same of other kinds, ``sampler={...}``.
    """
    from gnnbench.core import registry
    from gnnbench.harness import available, environment
    from gnnbench.measure import contention, machine

    for kind, objects in {registry.SYSTEM: names, **stages}.items():
        value = ",".join(f"{k}={module}:{v}" for k, v in objects.items())
        monkeypatch.setenv(registry.extra_variable(kind), value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE.parents[1]), str(HERE)]))
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    monkeypatch.setattr(machine, "busy_seconds", lambda: 0.0)  # whatever else runs here
    monkeypatch.setattr(contention, "stolen_seconds", lambda: 0.0)
    monkeypatch.setattr(contention, "own_run_delay_s", lambda: 0.0)
    for cache in (registry.entries, available.availability, environment.dataset_state):
        cache.cache_clear()


class Quiet:
    """An observer that says nothing."""

    def note(self, text):
        pass

    def plan(self, pairs, budget_s):
        pass

    def step(self, text, fraction):
        pass

    def pair_done(self):
        pass


def run_systems(
    systems, out, reference, options=(), rounds=2, definition="breakdown", device="", pairs=1
):
    """Run the smoke profile with these systems, a pair of processes; the campaign's outcome."""
    from gnnbench.config.overrides import Overrides
    from gnnbench.harness import campaign
    from gnnbench.harness.launch import make_request

    if not any(text.startswith("rounds=") for text in options):
        options = (f"rounds={rounds}", *options)
    options = (f"reference={reference}", *options)
    wanted = Overrides("smoke", tuple(systems), device=device, options=options, repeats=pairs)
    return campaign.run(make_request(str(definition), wanted, out), Quiet())


def assert_incorrect(row, reason):
    """The row of a cheat that was caught for ``reason``, a regular expression: it has no ratio."""
    assert row["status"] == "incorrect", row
    assert re.search(reason, row["reason"]), row["reason"]
    assert row.get("ratio") is None
