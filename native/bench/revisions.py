"""Two revisions of gnnbench held against each other: every sampler, and epochs of every system.

    python native/bench/revisions.py OLD NEW --lives 10 --dataset ogbn_arxiv+sym > revisions.json

``OLD`` and ``NEW`` are Python interpreters, or interpreters with folders to import from before all
others (``python:folder``), in which the two revisions are installed. A life is a fresh process of
each; both prepare all cases, then run short stretches of one case in turns, A B, B A ..., so that
the machine's moods meet both. A case's ratio in a life is the median over turns of new / old; told
are the medians of times and of ratios over lives, and the ratios' range. Serves as evidence that a
redesign cost nothing.

With ``--apart`` one process alone has opened its device at a time: the sides of a life run one
after the other, A B, then B A ..., and a life's ratio is that of their medians. Two processes that
share a GPU disturb one another by more than what is to be told apart.
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
STRETCH_S = 0.02  # of a sampler's batches
CASE_S = 3.0  # of one case in a life, both sides
TURNS = (4, 16)  # least and most
Case = Callable[[], float]  # runs a stretch; seconds per batch or epoch


def cases(given: argparse.Namespace) -> dict[str, Case]:
    """What can be measured in this process, by whatever revision it imports; warmed up."""
    import gnnbench

    found: dict[str, Case] = {}
    graph = gnnbench.load_dataset(given.dataset)
    known = {s.name: s for s in gnnbench.samplers()}
    for name in SAMPLERS:
        if given.only and f"sampler {name}" not in given.only:
            continue
        here = name if name in known else {"hop-by-hop": "baseline"}[name]
        if given.device in known[here].devices:
            found[f"sampler {name}"] = _sampler(gnnbench, here, graph, given)
    if given.epochs:
        graph = gnnbench.load_dataset(given.epochs)
    systems = SYSTEMS if given.device == "cpu" else SYSTEMS[:1]
    for name in systems if given.epochs else ():
        for features in ("host", "uva", "gpu") if given.device == "cuda" else ("host",):
            label = f"epoch {name}" + f" features={features}" * (given.device == "cuda")
            if (case := _epochs(name, features, graph, given)) is not None:
                found[label] = case
    return found


def _sampler(gnnbench: Any, name: str, graph: Any, given: argparse.Namespace) -> Case:
    import torch

    device = given.device
    sampler = gnnbench.build_sampler(name, graph, FANOUTS, device, seed=1, pick="floyd")
    train = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    has = graph.indptr.diff() > 0
    seeds = train[has[train]].to(graph.indices.dtype).to(device).split(given.batch_size)[:-1]
    wait: Callable[[], Any] = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    number = 0

    def stretch(batches: int) -> float:
        nonlocal number
        wait()
        begin = time.perf_counter()
        for _ in range(batches):
            sampler.sample(seeds[number % len(seeds)], 0, number)
            number += 1
        wait()
        return (time.perf_counter() - begin) / batches

    stretch(5)
    batches = max(2, round(STRETCH_S / stretch(10)))
    return lambda: stretch(batches)


def _epochs(name: str, features: str, graph: Any, given: argparse.Namespace) -> Case | None:
    """None where the system cannot run here."""
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
    """A side of one life: the names of its cases, then a time for every name that comes."""
    import torch

    torch.set_num_threads(given.threads)
    import gnnbench  # noqa: F401

    print("ready 0", flush=True)
    sys.stdin.readline()
    known = cases(given)
    print("cases " + json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        print(f"time {known[line.strip()]()!r}", flush=True)


def _answer(side: subprocess.Popen[str], word: str) -> Any:
    assert side.stdout is not None
    for line in side.stdout:
        if line.startswith(word):
            return json.loads(line[len(word) :])
    raise SystemExit("a side ended early; see above")


def start(side: str, words: list[str]) -> subprocess.Popen[str]:
    """A fresh process that has imported its revision, and nothing more before it gets a command."""
    python, _, folder = side.partition(":")
    where = {"PYTHONPATH": folder} if folder else {}
    return subprocess.Popen(
        [python, __file__, "--serve", *words],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **where},
    )


def _tell(side: subprocess.Popen[str], line: str) -> None:
    assert side.stdin is not None
    side.stdin.write(line + "\n")
    side.stdin.flush()


def _end(side: subprocess.Popen[str]) -> None:
    assert side.stdin is not None
    side.stdin.close()
    side.wait()


def life(running: list[subprocess.Popen[str]]) -> dict[str, tuple[list[float], list[float]]]:
    """Times of both sides by case, in turns."""
    for side in running:
        _tell(side, "open")
    names = [_answer(side, "cases ") for side in running]
    found: dict[str, tuple[list[float], list[float]]] = {}
    for name in (n for n in names[0] if n in names[1]):
        times: tuple[list[float], list[float]] = ([], [])
        began = time.monotonic()
        for turn in range(TURNS[1]):
            for at in (0, 1) if turn % 2 == 0 else (1, 0):
                _tell(running[at], name)
                times[at].append(_answer(running[at], "time "))
            if turn + 1 >= TURNS[0] and turn % 2 and time.monotonic() - began > CASE_S:
                break
        found[name] = times
    for side in running:
        _end(side)
    return found


def life_apart(running: list[subprocess.Popen[str]]) -> dict[str, tuple[list[float], list[float]]]:
    """Times of both sides by case, all of one side before the other opens its device."""
    found: list[dict[str, list[float]]] = []
    for side in running:
        _tell(side, "open")
        times: dict[str, list[float]] = {}
        for name in _answer(side, "cases "):
            own = times[name] = []
            began = time.monotonic()
            while len(own) < TURNS[0] or time.monotonic() - began < CASE_S / 2:
                _tell(side, name)
                own.append(_answer(side, "time "))
        _end(side)
        found.append(times)
    return {name: (found[0][name], found[1][name]) for name in found[0] if name in found[1]}


def main() -> None:
    """Measure, and print a table on standard error and JSON on standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sides", nargs="*", metavar="OLD NEW")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--lives", type=int, default=10)
    parser.add_argument("--apart", action="store_true", help="one side at a time on the device")
    parser.add_argument("--only", action="append", default=[], help="a case 'sampler NAME'; again")
    parser.add_argument("--dataset", default="ogbn_arxiv+sym", help="for the samplers")
    parser.add_argument("--epochs", default="", help="dataset of the epochs; none without")
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
    lives = [given.sides[:: 1 if n % 2 == 0 else -1] for n in range(given.lives)]
    # Apart: all are there before the first opens a graph, so that no import runs during a case.
    early = [[start(side, words) for side in sides] for sides in lives if given.apart]
    for side in (side for running in early for side in running):
        _answer(side, "ready ")
    for number, sides in enumerate(lives):
        if given.apart:
            measured = life_apart(early[number])
        else:
            measured = life([start(side, words) for side in sides])
        for name, found in measured.items():
            old, new = found if number % 2 == 0 else found[::-1]
            if given.apart:
                ratio = statistics.median(new) / statistics.median(old)
            else:
                ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
            row = [statistics.median(old), statistics.median(new), ratio]
            times.setdefault(name, []).append(row)
        for name, rows in times.items():  # after every life: what is there counts
            old, new, ratios = (list(c) for c in zip(*rows, strict=True))
            table[name] = {
                "old_s": statistics.median(old), "new_s": statistics.median(new),
                "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios),
                "lives": len(ratios), "ratios": ratios,
            }  # fmt: skip
        print(f"{number + 1} lives", file=sys.stderr)
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
