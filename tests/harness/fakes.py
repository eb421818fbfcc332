"""Names of the fake systems, the environment that registers them, and an observer."""

import os
from pathlib import Path

HERE = Path(__file__).parent
FAKES = {
    "fake": "Fake", "slow": "Slow", "other": "Other", "incorrect": "Incorrect",
    "late-incorrect": "LateIncorrect", "crash": "Crash", "raises": "Raises", "hang": "Hang",
    "greedy": "Greedy", "greedy-torch": "GreedyTorch", "greedy-real": "GreedyReal",
    "greedy-gpu": "GreedyGpu", "absent": "Absent", "late-absent": "LateAbsent",
    "unable": "Unable", "fragile": "Fragile", "gpu": "Gpu",
    "greedy-gpu-driver": "GreedyGpuDriver", "spin": "Spin", "chatty": "Chatty",
    "waits": "Waits", "graphed": "Graphed", "sampling": "Sampling",
    "sampling-twice": "SamplingTwice",
}  # fmt: skip


def fake_environment():
    return {
        "GNNBENCH_EXTRA_SYSTEMS": ",".join(f"{k}=fake_systems:{v}" for k, v in FAKES.items()),
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE)]),
    }


class Quiet:
    """An observer that records notes and steps."""

    def __init__(self):
        self.notes = []
        self.steps = []

    def note(self, text):
        self.notes.append(text)

    def plan(self, pairs, budget_s):
        self.pairs = pairs

    def step(self, text, fraction):
        assert 0 <= fraction <= 1
        self.steps.append(text)

    def pair_done(self):
        pass


def by_system(outcome):
    return {r["system"]: r for r in outcome.rows}
