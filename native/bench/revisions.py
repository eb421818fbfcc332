"""Two revisions of gnnbench held against each other: every sampler, and epochs of every system.

    python native/bench/revisions.py OLD NEW --lives 10 --dataset ogbn_arxiv+sym > revisions.json

``OLD`` and ``NEW`` are Python interpreters, or interpreters with a folder to import from before all
others (``python:folder``), in which the two revisions are installed. Lives (fresh processes) of
both alternate A B, B A ...; each measures all cases and gives the median of its batches (samplers)
or epochs (systems). Told are the medians over lives, their ratio new / old, and the ratio's range
over the couples of lives. Serves as evidence that a redesign cost nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

FANOUTS = [15, 10, 5]
SAMPLERS = ("hop-by-hop", "gnnlab", "fused-map", "fastsample", "pgsampler", "dgl-fusion")
SYSTEMS = ("baseline", "dgl", "pyg", "pyg-native-sampler")
BATCHES, EPOCHS = 60, 4


def life(
    dataset: str, device: str, batch_size: int, threads: int, epochs: bool
) -> dict[str, float]:
    """Seconds by case, measured in this process by whatever revision it imports."""
    import torch

    torch.set_num_threads(threads)
    import gnnbench

    graph = gnnbench.load_dataset(dataset)
    found: dict[str, float] = {}
    renamed = {s.name for s in gnnbench.samplers()}
    for name in SAMPLERS:
        known = name if name in renamed else {"hop-by-hop": "baseline"}[name]
        info = next(s for s in gnnbench.samplers() if s.name == known)
        if device in info.devices:
            found[f"sampler {name}"] = _sampler(gnnbench, known, graph, device, batch_size)
    systems = SYSTEMS if device == "cpu" else SYSTEMS[:1]
    for name in systems if epochs else ():
        for what in ("host", "uva", "gpu") if device == "cuda" else ("host",):
            label = f"epoch {name}" + f" features={what}" * (device == "cuda")
            run = _epochs(name, what, dataset, device, batch_size, threads, graph)
            if run is not None:
                found[label] = statistics.median(run)
    return found


def _sampler(gnnbench: Any, name: str, graph: Any, device: str, batch_size: int) -> float:
    import torch

    sampler = gnnbench.build_sampler(name, graph, FANOUTS, device, seed=1, pick="floyd")
    train = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    has = graph.indptr.diff() > 0
    seeds = train[has[train]].to(graph.indices.dtype).to(device).split(batch_size)
    wait: Callable[[], Any] = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    times = []
    for number in range(BATCHES + 10):
        begin = time.perf_counter()
        batch = sampler.sample(seeds[number % (len(seeds) - 1)], 0, number)
        if device == "cpu":
            times.append(time.perf_counter() - begin)
        del batch
    if device == "cuda":  # back to back: the host must not wait for each
        for _ in range(40):
            wait()
            begin = time.perf_counter()
            for number in range(BATCHES):
                sampler.sample(seeds[number % (len(seeds) - 1)], 0, number)
            wait()
            times.append((time.perf_counter() - begin) / BATCHES)
        times = times[-36:]
    else:
        times = times[10:]
    sampler.close()
    return statistics.median(times)


def _epochs(
    name: str, features: str, dataset: str, device: str, batch_size: int, threads: int, graph: Any
) -> list[float] | None:
    """Wall times of epochs after the first two; None where the system cannot run here."""
    shared = {
        "experiment": "revisions", "system": name, "dataset": dataset, "model": "gcn",
        "device": device, "batch_size": batch_size, "fanouts": tuple(FANOUTS),
        "threads": threads, "max_batches": 6,
    }  # fmt: skip
    try:
        from gnnbench.composition.find import find
    except ImportError:
        return _epochs_before_recipes(name, features, shared, graph)
    from gnnbench.cell import Cell, Until
    from gnnbench.measure.timeline import Timeline

    known = find(name)
    if known.missing(device, Until.COMPUTE) is not None:
        return None
    given = {"features": features} if name == "baseline" else {}
    cell = Cell(**shared, recipe=known.resolved(given, device, Until.COMPUTE).recipe)
    system = known.build(cell, graph)
    system.setup()
    times = []
    for epoch in range(EPOCHS + 2):
        timeline = Timeline.on(device)
        timeline.start()
        system.run_epoch(epoch, timeline)
        timeline.stop()
        report = system.audit(epoch)
        assert report.ok, report.reason
        times.append(timeline.wall_s)
    system.close()
    return times[2:]


def _epochs_before_recipes(
    name: str, features: str, shared: dict[str, Any], graph: Any
) -> list[float] | None:
    from gnnbench.cell import Cell
    from gnnbench.systems import registry

    known = registry.get(name)
    if known.missing(shared["device"]) is not None:
        return None
    options = {"features": features} if shared["device"] == "cuda" else {}
    system = known(Cell(**shared, options=options), graph)
    system.setup()
    samples = [system.run_epoch(epoch) for epoch in range(EPOCHS + 2)]
    system.close()
    return [s.wall_s for s in samples[2:]]


def lives(sides: list[str], count: int, words: list[str]) -> Iterator[tuple[int, dict[str, float]]]:
    """(side, times by case) of alternating fresh processes."""
    for number in range(count):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            python, _, folder = sides[side].partition(":")
            where = {"PYTHONPATH": folder} if folder else {}
            done = subprocess.run(
                [python, __file__, "--life", *words],
                env={**os.environ, **where}, stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
            yield side, json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure, and print a table on standard error and JSON on standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sides", nargs="*", metavar="OLD NEW")
    parser.add_argument("--life", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--lives", type=int, default=10)
    parser.add_argument("--dataset", default="ogbn_arxiv+sym")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--samplers-only", action="store_true")
    given = parser.parse_args()
    if given.life:
        found = life(
            given.dataset, given.device, given.batch_size, given.threads, not given.samplers_only
        )
        print(json.dumps(found))
        return
    words = ["--dataset", given.dataset, "--device", given.device]
    words += ["--batch-size", str(given.batch_size), "--threads", str(given.threads)]
    words += ["--samplers-only"] * given.samplers_only
    times: tuple[list[dict[str, float]], ...] = ([], [])
    for side, found in lives(given.sides, given.lives, words):
        times[side].append(found)
    table = {}
    for case in times[0][0]:
        old, new = ([t[case] for t in side if case in t] for side in times)
        ratios = [b / a for a, b in zip(old, new, strict=True)]
        table[case] = {
            "old_s": statistics.median(old), "new_s": statistics.median(new),
            "ratio_of_medians": statistics.median(new) / statistics.median(old),
            "median_ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios),
            "lives": len(ratios),
        }  # fmt: skip
        row = table[case]
        print(
            f"{case:34} {row['old_s'] * 1e3:9.3f} {row['new_s'] * 1e3:9.3f} ms"
            f"  {row['ratio_of_medians']:.3f}  {row['median_ratio']:.3f}"
            f" [{row['least']:.3f}, {row['most']:.3f}]",
            file=sys.stderr,
        )
    print(json.dumps({"settings": vars(given) | {"sides": ["old", "new"]}, "cases": table}))


if __name__ == "__main__":
    main()
