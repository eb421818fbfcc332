"""The measures that a claim can name. Each returns one number of a cell with its interval.

To add a measure: write a function ``(evidence, row) -> Estimate`` in one of the ``*_measures``
modules, and add its name here. Ratios of times of two cells are in ``time_ratios``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import PHASES
from gnnbench.core.counters import KERNEL_OVERLAP, Metric
from gnnbench.reproduction import (
    count_measures,
    kernel_measures,
    memory_measures,
    phase_measures,
    stage_measures,
)
from gnnbench.reproduction.evidence import MeasureFunction, RunEvidence
from gnnbench.reproduction.interval_arithmetic import of_metric
from gnnbench.schema import CellRow
from gnnbench.statistics.estimates import Estimate


def _metric(stage: str, name: Metric) -> MeasureFunction:
    """A number that ``metrics.csv`` already has with its interval."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        return of_metric(evidence.metrics.row(row["id"], stage, name))

    return measure


MEASURES: Mapping[str, MeasureFunction] = MappingProxyType(
    {
        "hit_ratio": count_measures.hit_ratio,
        "rows_loaded": count_measures.rows_loaded,
        "loaded_rows": count_measures.loaded_rows,
        "over_best_order": count_measures.over_best_order,
        "input_nodes": count_measures.input_nodes,
        "peak_memory": count_measures.peak_memory,
        "stored_bytes": count_measures.stored_bytes,
        "match_degree": count_measures.match_degree,
        "match_degree_most": count_measures.match_degree_most,
        "match_spread": count_measures.match_spread,
        "requests_naive": count_measures.requests("naive"),
        "requests_aligned": count_measures.requests("aligned"),
        "requests_lines": count_measures.requests("lines"),
        "requests_ratio": count_measures.requests_combined(
            lambda naive, aligned, lines: naive / aligned
        ),
        "requests_extra": count_measures.requests_combined(
            lambda naive, aligned, lines: aligned - lines
        ),
        "trains": count_measures.trains,
        "same_edges": count_measures.same_edges,
        "hot_similarity": memory_measures.hot_similarity,
        "rounds": memory_measures.rounds,
        "loss_apart": memory_measures.loss_apart,
        "memory_left": memory_measures.memory_left,
        "memory_of_rows": memory_measures.memory_of("features", "rows"),
        "memory_of_all_epochs": memory_measures.memory_of("topology", "features"),
        "kernel_overlap": _metric("schedule", KERNEL_OVERLAP),
        "launches": kernel_measures.launches,
        "launches_a_hop": kernel_measures.launches_per_hop,
        "of_ceiling": kernel_measures.of_ceiling,
        "of_peak": kernel_measures.of_peak,
        "aggregate_rate": kernel_measures.aggregate_rate("forward"),
        "aggregate_backward_rate": kernel_measures.aggregate_rate("backward"),
        "hit_rate_gap": kernel_measures.hit_rate_gap,
        "compute_throughput": kernel_measures.sampler_throughput("compute"),
        "memory_throughput": kernel_measures.sampler_throughput("memory"),
        "shared_over_l2": kernel_measures.level_ratio("shared", "L2"),
        "l2_over_memory": kernel_measures.level_ratio("L2", "memory"),
        "id_map_s": stage_measures.stage_time("id_map"),
        "prepare_s_spread": stage_measures.stage_spread("prepare"),
        "pick_s": stage_measures.stage_time("pick"),
        "pick_s_growth": stage_measures.stage_growth("pick"),
        "pick_rate_growth": stage_measures.pick_rate_growth,
        "prepare_over_pick_1": stage_measures.prepare_over_pick(1),
        "prepare_over_pick_2": stage_measures.prepare_over_pick(2),
        "prepare_over_pick_3": stage_measures.prepare_over_pick(3),
        "sample_share": phase_measures.share("sample"),
        "memory_io_share": phase_measures.share("memory_io"),
        "compute_share": phase_measures.share("compute"),
        "sample_lead": phase_measures.lead("sample"),
        "memory_io_lead": phase_measures.lead("memory_io"),
        "compute_lead": phase_measures.lead("compute"),
        "overlap_share": phase_measures.overlap_share,
        "memory_io_over_compute": phase_measures.phase_ratio("memory_io", "compute"),
        "memory_io_gain": phase_measures.gain("memory_io"),
        "gain_over_sampling": phase_measures.gain_over_sampling,
        "presampling_epochs": phase_measures.presampling_epochs,
        "groups_of_compute": phase_measures.groups_of_compute,
        "of_copy": _metric("features", m.OF_COPY),
        "val_accuracy": _metric(m.LEARNING, m.VAL_ACCURACY),
    }
)
# Cells whose phases overlap have none of these.
PHASE_MEASURES = frozenset(
    f"{phase}_{of}" for phase in PHASES for of in ("share", "lead", "over_compute")
) & frozenset(MEASURES)
# A timing anomaly of a row affects these only: counts remain valid, and a row with wrong work is
# `incorrect`.
TIME_DEPENDENT = frozenset(
    name
    for name in MEASURES
    if name.endswith(("_share", "_lead", "_rate", "_gain", "presampling_epochs", "_of_compute"))
    or name.startswith(("of_", "gain_"))
    or "_over_" in name
    or name.startswith(("id_map_", "prepare_", "pick_"))
)
# These use the ratio of a cell to its reference, which needs enough pairs.
SPEEDUP_MEASURES = frozenset({"memory_io_gain", "gain_over_sampling"})
