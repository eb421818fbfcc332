"""``cells.csv``: what a user opens first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnnbench.schema.column import Record, column

VERSION = 3

STATUSES = {
    "ok": "measured",
    "oom_gpu": "the GPU's memory was exhausted",
    "oom_host": "the host's memory was exhausted",
    "timeout": "a command took longer than cell_timeout_s",
    "crash": "the worker died by a signal or raised an error",
    "unsupported": "the system cannot do what the cell asks",
    "missing_dep": "a backend is not there",
    "missing_data": "the dataset is not there, or is damaged; `reason` has the way to get it",
    "incorrect": "the correctness gate failed; takes part in no ratio",
    "unstable": "measured, but the interval is wider than unstable_half_width, or a pair was in "
    "doubt (other programs ran, the GPU was throttled) and was so again, or the training diverged; "
    "its ratio has no verdict",
}
WORK_CLASSES = {
    "identical": "the same sampled edges as the reference (equal digests)",
    "equivalent": "same frontier and inclusion law, drawn by other random numbers; edges and nodes "
    "per seed within 1 %, of few within what chance leads them apart, 10 % at most. Or equal "
    "draws, and another number of batches an update",
    "different": "other work; no plain ratio is given, only per edge and per batch",
}


@dataclass(slots=True, kw_only=True, eq=False)
class RatioColumns(Record):
    """The columns of a ratio, in ``cells.csv`` and in ``ratios.csv``."""

    ratio: float | None = column(
        "1",
        "geometric mean over pairs of fresh processes of the reference's judged time / this "
        "system's, each pair's the median over its rounds; above 1 is faster; empty for "
        "different work",
    )
    ratio_ci_low: float | None = column(
        "1",
        "lower end of its interval: Student's t over pairs, 95 % over all looks together",
    )
    ratio_ci_high: float | None = column("1", "upper end of its interval")
    pairs: int | None = column("", "pairs of fresh processes behind it: the unit of all statistics")
    rounds: int | None = column("", "rounds in which both were measured, of all pairs")
    sd_pair: float | None = column("", "standard deviation between pairs of the ratio's logarithm")
    sd_round: float | None = column("", "the same between rounds of one pair")
    noise_floor: float | None = column(
        "1",
        "largest difference that equal systems show here, in 95 % of comparisons of as many pairs",
    )
    floor_from: str = column("", "whose spread noise_floor and detectable rest on")
    detectable: float | None = column("1", "smallest difference called in 80 % of such comparisons")
    pairs_needed: int | None = column("", "of an unclear ratio: about how many pairs would tell")
    verdict: str = column(
        "",
        "see below; empty with fewer than 5 pairs, in doubt, or before the last look",
    )


@dataclass(slots=True, kw_only=True, eq=False)
class CellRow(RatioColumns):
    """A cell under one of its names: a row of ``cells.csv``."""

    INHERITED_BEFORE: ClassVar[str] = "reference_s"

    id: str = column("", "content hash of the work; equal work under two names has one")
    experiment: str = column("", "name of the definition")
    system: str = column("", "registered name of the system")
    env: str = column(
        "",
        "the Python environment that it ran in (--env); empty: that of the run; see run.json",
    )
    versions: str = column("", "what ran, as its worker found it: system's packages, torch, Python")
    reference: str = column(
        "",
        "system or label of what it was interleaved with; its own name if it is it",
    )
    reference_id: str = column("", "the reference's id; its own if it is the one")
    dataset: str = column("", "dataset, with ~twin and @scale where they apply")
    until: str = column("", "how far an epoch goes: sample, memory_io or compute")
    model: str = column("", "model; empty without compute")
    device: str = column("", "cpu or cuda")
    pick: str = column("", "pick in use, as the gate reported it")
    frontier: str = column("", "frontier in use, as the gate reported it")
    law: str = column("", "inclusion law of the pick, as the gate reported it")
    batch_size: int = column("seeds", "seeds per batch")
    fanouts: str = column("", "fanouts from the seeds outwards, joined by '/'")
    hidden: int | None = column("", "hidden width of the model")
    learning_rate: float | None = column("", "learning rate")
    threads: int = column("", "threads given to each worker")
    seed: int = column("", "seed of sampling, order and weights")
    max_batches: int = column("", "batches after which an epoch is cut; 0: never")
    evaluate: str = column(
        "",
        "neighbours over which the model is evaluated after each epoch: sampled (by the "
        "fanouts) or all; empty: it is not",
    )
    gpus: int | None = column("", "GPUs that train; empty on a CPU")
    recipe: str = column("", "the resolved recipe, stage by stage, as JSON")
    nodes: int | None = column("", "nodes of the graph")
    edges: int | None = column("", "directed edges of the graph")
    train_nodes: int | None = column("", "size of the training set")
    feature_dim: int | None = column("", "width of a feature row")
    features: str = column("", "where the features come from, as the store says")
    batches: int | None = column("", "batches of a measured epoch")
    epoch_batches: int | None = column("", "batches that a whole epoch has")
    seeds: int | None = column("", "seeds of a measured epoch")
    sampled_edges: int | None = column(
        "",
        "edges drawn in a measured epoch, median; of systems that drew the same a little "
        "more or less where they measured other numbers of epochs",
    )
    unique_nodes: int | None = column("", "input nodes of all batches of an epoch, median")
    sample_time_s: float | None = column("s", "sample phase of an epoch, busy time, as judged_s")
    memory_io_time_s: float | None = column(
        "s", "memory_io phase of an epoch, busy time, as judged_s"
    )
    compute_time_s: float | None = column("s", "compute phase of an epoch, busy time, as judged_s")
    overlap_s: float | None = column("s", "time of an epoch in which phases overlap, as judged_s")
    idle_s: float | None = column("s", "time of an epoch in which no phase is busy, as judged_s")
    epoch_wall_s: float | None = column("s", "measured wall time of an epoch, as judged_s")
    judged: str = column("", "column of the time that decides stability, ratio and verdict")
    judged_s: float | None = column(
        "s",
        "that time of an epoch: geometric mean over lives of each life's median",
    )
    ci_low_s: float | None = column(
        "s", "lower end of its 95 % interval, by Student's t over lives"
    )
    ci_high_s: float | None = column("s", "upper end of its 95 % interval")
    n: int = column(
        "epochs",
        "measured epochs: of the comparison that the ratio is of, of a reference all",
    )
    lives: int | None = column("", "fresh processes that they were measured in")
    digest: str = column("", "SHA-256 of the gate's sampled edges; empty for a foreign sampler")
    work_class: str = column("", "work compared with the reference's: see below")
    verified: bool | None = column("", "false: nobody but the system itself vouches for its work")
    reference_s: float | None = column(
        "s", "the reference's judged time in the same rounds as the ratio"
    )
    loss: float | None = column(
        "", "mean training loss of the last measured epoch; empty without compute"
    )
    stopped: str = column(
        "",
        "why measuring ended: called, precise, pairs (as many as asked for), budget or doubt",
    )
    doubtful: str = column("", "why the row should not be trusted as it is; empty if nothing")
    remark: str = column("", "worth knowing, no reason for doubt")
    stand_in_for: str = column("", "missing system that this row stands in for")
    status: str = column("", "see below")
    reason: str = column("", "one sentence for a status other than ok, with the fix")
    schema_version: int = column("", f"{VERSION}; tables of another version are refused")


CELLS = CellRow.columns()
