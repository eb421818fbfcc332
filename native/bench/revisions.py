"""Compare the speed of two revisions of gnnbench: every sampler, and epochs of every system.

    python native/bench/revisions.py OLD NEW --trials 10 --dataset ogbn_arxiv+sym > revisions.json

``OLD`` and ``NEW`` are Python interpreters in which the revisions are installed, optionally with a
folder that is imported first (``python:folder``). A trial starts a fresh process of each revision.
Both prepare all cases, then alternate short measurements of one case, A B, B A ..., so that
background load affects both. A case's ratio in a trial is the median over iterations of new / old.
Reported are the medians of times and ratios over trials, and the range of ratios. This shows
whether a redesign changed the speed.

With ``--sequential`` only one process at a time opens its device: the sides of a trial run one
after the other, A B, then B A ..., and a trial's ratio is that of their medians. Two processes that
share a GPU would otherwise interfere more than the differences to detect.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

FANOUTS = [15, 10, 5]
SAMPLERS = ("hop-by-hop", "gnnlab", "fused-map", "fastsample", "pgsampler", "dgl-fusion")
SYSTEMS = ("baseline", "dgl", "pyg", "pyg-native-sampler")
MEASUREMENT_S = 0.02  # of a sampler's batches
CASE_S = 3.0  # of one case in a trial, both sides
ITERATIONS = (4, 16)  # minimum and maximum
Case = Callable[[], float]  # one measurement; returns seconds per batch or epoch


def cases(given: argparse.Namespace) -> dict[str, Case]:
    """Build and warm up the cases that the imported revision supports."""
    import gnnbench

    available: dict[str, Case] = {}
    graph = gnnbench.load_dataset(given.dataset)
    known = {s.name: s for s in gnnbench.samplers()}
    for name in SAMPLERS:
        if given.only and f"sampler {name}" not in given.only:
            continue
        own_name = name if name in known else {"hop-by-hop": "baseline"}[name]
        if given.device in known[own_name].devices:
            available[f"sampler {name}"] = _sampler(gnnbench, own_name, graph, given)
    if given.epochs:
        graph = gnnbench.load_dataset(given.epochs)
    systems = SYSTEMS if given.device == "cpu" else SYSTEMS[:1]
    for name in systems if given.epochs else ():
        for features in ("host", "uva", "gpu") if given.device == "cuda" else ("host",):
            label = f"epoch {name}" + f" features={features}" * (given.device == "cuda")
            if (case := _epochs(name, features, graph, given)) is not None:
                available[label] = case
    return available


def _sampler(gnnbench: Any, name: str, graph: Any, given: argparse.Namespace) -> Case:
    import torch

    device = given.device
    sampler = gnnbench.build_sampler(name, graph, FANOUTS, device, seed=1, pick="floyd")
    train = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    has_neighbors = graph.indptr.diff() > 0
    seeds = train[has_neighbors[train]].to(graph.indices.dtype).to(device)
    batches_of_seeds = seeds.split(given.batch_size)[:-1]
    wait: Callable[[], Any] = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    number = 0

    def measure(batches: int) -> float:
        nonlocal number
        wait()
        begin = time.perf_counter()
        for _ in range(batches):
            sampler.sample(batches_of_seeds[number % len(batches_of_seeds)], 0, number)
            number += 1
        wait()
        return (time.perf_counter() - begin) / batches

    measure(5)
    batches = max(2, round(MEASUREMENT_S / measure(10)))
    return lambda: measure(batches)


def _epochs(name: str, features: str, graph: Any, given: argparse.Namespace) -> Case | None:
    """Build a case of epochs. Returns None if the system cannot run here."""
    shared = {
        "experiment": "revisions", "system": name, "dataset": given.epochs, "model": "gcn",
        "device": given.device, "batch_size": given.epochs_batch_size or given.batch_size,
        "fanouts": tuple(FANOUTS), "threads": given.threads, "max_batches": 4,
    }  # fmt: skip
    try:
        from gnnbench.systems.runtime.find import find
    except ImportError:
        return _epochs_before_recipes(name, features, graph, shared)
    from gnnbench.core.cell import Cell, Until
    from gnnbench.measure.timeline import Timeline

    known = find(name)
    if known.missing(given.device, Until.COMPUTE) is not None:
        return None
    settings = {"features": features} if name == "baseline" else {}
    made = known.resolved(settings, given.device, Until.COMPUTE)
    system = known.build(Cell(**shared, recipe=made.recipe), graph)
    system.setup()
    number = 0

    def epoch() -> float:
        nonlocal number
        timeline = Timeline.on(given.device)
        timeline.start()
        system.run_epoch(number, timeline)
        timeline.stop()
        report = system.audit(number)
        assert report.ok, report.reason
        number += 1
        return timeline.wall_s

    for _ in range(2):
        epoch()
    return epoch


def _epochs_before_recipes(
    name: str, features: str, graph: Any, shared: dict[str, Any]
) -> Case | None:
    from gnnbench.core.cell import Cell
    from gnnbench.systems import registry

    known = registry.get(name)
    if known.missing(shared["device"]) is not None:
        return None
    options = {"features": features} if shared["device"] == "cuda" else {}
    system = known(Cell(**shared, options=options), graph)
    system.setup()
    number = 0

    def epoch() -> float:
        nonlocal number
        number += 1
        wall: float = system.run_epoch(number - 1).wall_s
        return wall

    for _ in range(2):
        epoch()
    return epoch


def serve(given: argparse.Namespace) -> None:
    """Run one side of a trial: print its case names, then a time for each name on stdin."""
    import torch

    torch.set_num_threads(given.threads)
    import gnnbench  # noqa: F401

    print("ready 0", flush=True)
    sys.stdin.readline()
    known = cases(given)
    print("cases " + json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        print(f"time {known[line.strip()]()!r}", flush=True)


def _receive(side: subprocess.Popen[str], word: str) -> Any:
    assert side.stdout is not None
    for line in side.stdout:
        if line.startswith(word):
            return json.loads(line[len(word) :])
    raise SystemExit("a process ended early; see the output above")


def start(side: str, words: list[str]) -> subprocess.Popen[str]:
    """Start a process that imports its revision and waits for a command."""
    python, _, folder = side.partition(":")
    environment = {"PYTHONPATH": folder} if folder else {}
    return subprocess.Popen(
        [python, __file__, "--serve", *words],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )


def _send(side: subprocess.Popen[str], line: str) -> None:
    assert side.stdin is not None
    side.stdin.write(line + "\n")
    side.stdin.flush()


def _end(side: subprocess.Popen[str]) -> None:
    assert side.stdin is not None
    side.stdin.close()
    side.wait()


def run_trial(running: list[subprocess.Popen[str]]) -> dict[str, tuple[list[float], list[float]]]:
    """Return the times of both sides by case, from alternating measurements."""
    for side in running:
        _send(side, "open")
    names = [_receive(side, "cases ") for side in running]
    times_of: dict[str, tuple[list[float], list[float]]] = {}
    for name in (n for n in names[0] if n in names[1]):
        times: tuple[list[float], list[float]] = ([], [])
        began = time.monotonic()
        for number in range(ITERATIONS[1]):
            for at in (0, 1) if number % 2 == 0 else (1, 0):
                _send(running[at], name)
                times[at].append(_receive(running[at], "time "))
            if number + 1 >= ITERATIONS[0] and number % 2 and time.monotonic() - began > CASE_S:
                break
        times_of[name] = times
    for side in running:
        _end(side)
    return times_of


def run_sequential_trial(
    running: list[subprocess.Popen[str]],
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the times of both sides by case; one side ends before the other opens its device."""
    by_side: list[dict[str, list[float]]] = []
    for side in running:
        _send(side, "open")
        times: dict[str, list[float]] = {}
        for name in _receive(side, "cases "):
            own = times[name] = []
            began = time.monotonic()
            while len(own) < ITERATIONS[0] or time.monotonic() - began < CASE_S / 2:
                _send(side, name)
                own.append(_receive(side, "time "))
        _end(side)
        by_side.append(times)
    first, second = by_side
    return {name: (first[name], second[name]) for name in first if name in second}


def main() -> None:
    """Measure; print a table to standard error and JSON to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sides", nargs="*", metavar="OLD NEW")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--trials", "--lives", dest="trials", type=int, default=10)
    parser.add_argument(
        "--sequential", "--apart", dest="sequential", action="store_true",
        help="run one side at a time on the device",
    )  # fmt: skip
    parser.add_argument("--only", action="append", default=[], help="'sampler NAME', repeatable")
    parser.add_argument("--dataset", default="ogbn_arxiv+sym", help="for the samplers")
    parser.add_argument("--epochs", default="", help="dataset of the epochs; default: no epochs")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--epochs-batch-size", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    if given.serve:
        serve(given)
        return
    words = []
    for name in ("dataset", "epochs", "device", "batch_size", "epochs_batch_size", "threads"):
        words += [f"--{name.replace('_', '-')}", str(getattr(given, name))]
    words += [f"--only={case}" for case in given.only]
    times: dict[str, list[list[float]]] = {}
    table: dict[str, dict[str, Any]] = {}
    trials = [given.sides[:: 1 if n % 2 == 0 else -1] for n in range(given.trials)]
    # All processes start before the first opens a graph, so that no import overlaps a case.
    early = [[start(side, words) for side in sides] for sides in trials if given.sequential]
    for side in (side for running in early for side in running):
        _receive(side, "ready ")
    for number, sides in enumerate(trials):
        if given.sequential:
            measured = run_sequential_trial(early[number])
        else:
            measured = run_trial([start(side, words) for side in sides])
        for name, pair in measured.items():
            old, new = pair if number % 2 == 0 else pair[::-1]
            if given.sequential:
                ratio = statistics.median(new) / statistics.median(old)
            else:
                ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
            row = [statistics.median(old), statistics.median(new), ratio]
            times.setdefault(name, []).append(row)
        for name, rows in times.items():  # after every trial, so that an abort keeps results
            old, new, ratios = (list(c) for c in zip(*rows, strict=True))
            table[name] = {
                "old_s": statistics.median(old), "new_s": statistics.median(new),
                "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios),
                "lives": len(ratios), "ratios": ratios,
            }  # fmt: skip
        print(f"{number + 1} trials", file=sys.stderr)
        for name, row in table.items():
            print(
                f"{name:30} {row['old_s'] * 1e3:9.3f} {row['new_s'] * 1e3:9.3f} ms"
                f"  {row['ratio']:.3f} [{row['least']:.3f}, {row['most']:.3f}]",
                file=sys.stderr, flush=True,
            )  # fmt: skip
    settings = {k: v for k, v in vars(given).items() if k not in ("sides", "serve")}
    print(json.dumps({"settings": settings, "cases": table}, indent=1))


if __name__ == "__main__":
    main()
