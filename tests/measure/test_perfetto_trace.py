"""Traces for Perfetto: ranges of phases, in a file that a run names."""

import gzip
import json
import time

import torch

from gnnbench.measure.trace import write_trace


def ranges(path):
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return {e["name"]: e["dur"] for e in events if e.get("cat") == "user_annotation"}


def test_spans_are_ranges_that_contain_their_calls(tmp_path):
    calls = []

    def work(timeline):
        calls.append("work")
        with timeline.span("sample", 3):
            torch.ones(10).sum()
        with timeline.span("compute"):
            time.sleep(0.01)

    path = tmp_path / "traces" / "x.json.gz"
    write_trace(work, lambda: calls.append("warm-up"), torch.device("cpu"), path, "dgl on small")
    assert calls == ["warm-up", "work"]
    summary = (tmp_path / "traces" / "x.txt").read_text()
    assert summary.startswith("dgl on small") and "sample     aten::sum" in summary
    marked = ranges(path)
    assert marked.keys() >= {"sample 3", "compute"} and marked["compute"] >= 10_000  # microseconds
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    by_name = {e["name"]: e for e in events if "ts" in e}
    inner, outer = by_name["aten::sum"], by_name["sample 3"]
    assert outer["ts"] <= inner["ts"] <= outer["ts"] + outer["dur"]


def test_traced_spans_are_timed_as_well(tmp_path):
    seen = []

    def work(timeline):
        with timeline.span("sample", 0):
            pass
        seen.extend(timeline.marks)

    write_trace(work, lambda: None, torch.device("cpu"), tmp_path / "x.json.gz", "t")
    ((phase, _, batch), begin, end) = seen[0]
    assert (phase, batch) == ("sample", 0) and end >= begin
