"""A trace of one epoch for Perfetto: spans of phases, calls of PyTorch, kernels and copies."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import torch

from gnnbench.core.files import write_text
from gnnbench.measure.kernel_overlap import Trace
from gnnbench.measure.timeline import OpenSpan, SpanKey, Timeline
from gnnbench.measure.trace_summary import summarize

SUFFIX = ".json.gz"


class TracedTimeline(Timeline):
    """Marks its spans for the profiler, and on a GPU as NVTX ranges for Nsight Systems."""

    def span(self, phase: str, batch: int = -1, lane: str = "") -> OpenSpan:
        """Return a context that measures and marks ``phase`` of ``batch``."""
        return _TracedSpan(self, (phase, lane or self.clock.lane, batch))


class _TracedSpan(OpenSpan):
    """A span with a range of the same name: ``sample 3`` is the sampling of batch 3."""

    __slots__ = ("_marks", "_name")

    def __init__(self, timeline: Timeline, key: SpanKey) -> None:
        super().__init__(timeline, key)
        phase, _, batch = key
        self._name = phase if batch < 0 else f"{phase} {batch}"
        self._marks = ExitStack()

    def __enter__(self) -> None:
        self._marks.enter_context(torch.profiler.record_function(self._name))
        if torch.cuda.is_available():
            self._marks.enter_context(torch.cuda.nvtx.range(self._name))
        super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._marks.close()


def write_trace(
    work: Callable[[Timeline], object], warm_up: Callable[[], object], device: torch.device,
    path: Path, title: str,
) -> list[Trace]:  # fmt: skip
    """Run ``work`` under the profiler and write its trace to ``path`` (``.json.gz``).

    A file of the same name that ends in ``.txt`` has the calls and kernels that took longest.

    ``work`` gets a timeline whose spans become ranges of the trace. ``title`` is the name of the
    process in it. Returns the trace, and that of the producer's process if ``work`` has one.
    """
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile

    warm_up()
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
        torch.cuda.synchronize(device)
    timeline = TracedTimeline(Timeline.on(str(device)).clock)
    every_thread = _ExperimentalConfig(profile_all_threads=True)  # prefetching ones started earlier
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name(f"{path.name.removesuffix(SUFFIX)}-producer{SUFFIX}")
    timeline.producer_trace = str(other)
    with profile(activities=activities, experimental_config=every_thread) as profiler:
        timeline.start()
        work(timeline)
        timeline.stop()
    profiler.export_chrome_trace(str(path))
    traces = [_finish(path, title)]
    if other.exists():
        traces.append(_finish(other, f"{title}, producer"))
    return traces


@contextmanager
def kernel_trace(path: str) -> Iterator[None]:
    """Write a trace of the kernels that this process runs meanwhile; "" for none."""
    from torch.profiler import ProfilerActivity, profile

    if not path:
        yield
        return
    kind = ProfilerActivity.CUDA if torch.cuda.is_initialized() else ProfilerActivity.CPU
    with profile(activities=[kind]) as profiler:
        yield
    profiler.export_chrome_trace(path)


def _finish(path: Path, title: str) -> Trace:
    """Name the process in a trace, write its summary, and return it."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    trace["traceName"] = title
    for event in trace["traceEvents"]:
        if event.get("name") == "process_name" and event["args"].get("name") == "python":
            event["args"]["name"] = title
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file)
    write_text(
        path.with_name(path.name.removesuffix(SUFFIX) + ".txt"),
        f"{title}\n\n{summarize(trace['traceEvents'])}",
    )
    return cast("Trace", trace)
