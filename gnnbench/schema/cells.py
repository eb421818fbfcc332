"""``cells.csv``: the main table of a run."""

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
    "crash": "the worker was ended by a signal or raised an error",
    "unsupported": "the system cannot do what the cell asks",
    "missing_dep": "a required package or device is missing",
    "missing_data": "the dataset is missing or damaged; `reason` says how to get it",
    "incorrect": "a correctness check failed; the cell is in no ratio",
    "unstable": "measured, but unreliable: the interval is wider than unstable_half_width, or "
    "other programs ran or the GPU was throttled in a trial and in its repetition, or the "
    "training diverged; the ratio has no verdict",
}
WORK_CLASSES = {
    "identical": "the same sampled edges as the reference (equal digests)",
    "equivalent": "same frontier and inclusion probabilities, other random numbers; edges and "
    "nodes per seed agree within 1 %, or for few seeds within their random spread, at most 10 %. "
    "Or equal sampled edges and another number of batches per update",
    "different": "other work; ratios are given per edge and per batch only",
}


@dataclass(slots=True, kw_only=True, eq=False)
class RatioColumns(Record):
    """The columns of a ratio, in ``cells.csv`` and in ``ratios.csv``."""

    ratio: float | None = column(
        "1",
        "reference's time / this system's time (the primary metric, see `judged`): median over "
        "the rounds of a pair of fresh processes, geometric mean over pairs; above 1 this system "
        "is faster; empty for different work",
    )
    ratio_ci_low: float | None = column(
        "1",
        "lower end of its interval: moderated t over pairs, 95 % over all interim analyses",
    )
    ratio_ci_high: float | None = column("1", "upper end of its interval")
    pairs: int | None = column("", "number of pairs of fresh processes, the unit of all statistics")
    rounds: int | None = column("", "rounds in which both were measured, sum over all pairs")
    sd_pair: float | None = column("", "standard deviation between pairs of the ratio's logarithm")
    sd_round: float | None = column(
        "", "standard deviation of the same logarithm between rounds of one pair"
    )
    noise_floor: float | None = column(
        "1",
        "largest difference between equal systems in 95 % of comparisons with as many pairs",
    )
    floor_from: str = column(
        "", "source of the spread that noise_floor and detectable are computed from"
    )
    detectable: float | None = column(
        "1", "smallest difference that gets a verdict in 80 % of such comparisons"
    )
    pairs_needed: int | None = column(
        "", "for an unclear ratio: approximate number of pairs that a verdict needs"
    )
    verdict: str = column(
        "",
        "see below; empty with fewer than 3 pairs, for an unreliable measurement, or before the "
        "first interim analysis",
    )
    p_value: float | None = column(
        "1",
        "probability of a ratio this far from 1 if the true one is within the margin, over all "
        "interim analyses; empty without a verdict",
    )
    p_adjusted: float | None = column(
        "1",
        "p_value adjusted for all verdicts of the table (Holm); `faster` and `slower` with a value "
        "above 0.05 are marked * in printed tables",
    )


@dataclass(slots=True, kw_only=True, eq=False)
class CellRow(RatioColumns):
    """A cell under one of its names: a row of ``cells.csv``."""

    INHERITED_BEFORE: ClassVar[str] = "reference_s"

    id: str = column("", "content hash of the work; equal work under two names has the same id")
    experiment: str = column("", "name of the definition")
    system: str = column("", "registered name of the system")
    env: str = column(
        "",
        "Python environment of its worker (--env); empty: the one of the run; see run.json",
    )
    versions: str = column("", "versions of the system's packages, torch and Python in its worker")
    reference: str = column(
        "",
        "system or label that it alternated with; its own name for the reference itself",
    )
    reference_id: str = column("", "id of the reference; its own id for the reference itself")
    dataset: str = column("", "dataset, with ~twin and @scale if used")
    until: str = column("", "last phase of an epoch: sample, memory_io or compute")
    model: str = column("", "model; empty without compute")
    device: str = column("", "cpu or cuda")
    pick: str = column(
        "", "sampling method (with or without replacement ...), as the gate reported it"
    )
    frontier: str = column("", "nodes that the next hop expands, as the gate reported it")
    law: str = column(
        "", "inclusion probabilities of the sampling method, as the gate reported them"
    )
    batch_size: int = column("seeds", "seeds per batch")
    fanouts: str = column("", "fanouts from the seeds outwards, joined by '/'")
    hidden: int | None = column("", "hidden width of the model")
    learning_rate: float | None = column("", "learning rate")
    dropout: float | None = column("", "share of hidden values that training sets to 0, if any")
    precision: str = column(
        "", "precision of the model's matrix products, tf32 or bfloat16; empty: float32"
    )
    threads: int = column("", "threads given to each worker")
    seed: int = column("", "seed of sampling, order and weights")
    max_batches: int = column("", "maximum number of batches of an epoch; 0: no maximum")
    evaluate: str = column(
        "",
        "neighbours used when the model is evaluated after each epoch: sampled (by the "
        "fanouts) or all; empty: no evaluation",
    )
    gpus: int | None = column("", "GPUs that train; empty on a CPU")
    recipe: str = column("", "the resolved recipe, stage by stage, as JSON")
    nodes: int | None = column("", "nodes of the graph")
    edges: int | None = column("", "directed edges of the graph")
    train_nodes: int | None = column("", "size of the training set")
    feature_dim: int | None = column("", "width of a feature row")
    features: str = column("", "origin of the features, as the feature store reports it")
    batches: int | None = column("", "batches of a measured epoch")
    epoch_batches: int | None = column("", "batches of a whole epoch")
    seeds: int | None = column("", "seeds of a measured epoch")
    sampled_edges: int | None = column(
        "",
        "edges sampled in a measured epoch, median; equal work can differ slightly, because "
        "systems measure different numbers of epochs",
    )
    unique_nodes: int | None = column("", "input nodes of all batches of an epoch, median")
    sample_time_s: float | None = column(
        "s", "busy time of the sample phase in an epoch, averaged as judged_s"
    )
    memory_io_time_s: float | None = column(
        "s", "busy time of the memory_io phase in an epoch, averaged as judged_s"
    )
    compute_time_s: float | None = column(
        "s", "busy time of the compute phase in an epoch, averaged as judged_s"
    )
    overlap_s: float | None = column(
        "s", "time of an epoch with two or more busy phases, averaged as judged_s"
    )
    idle_s: float | None = column(
        "s", "time of an epoch without a busy phase, averaged as judged_s"
    )
    epoch_wall_s: float | None = column("s", "wall time of an epoch, averaged as judged_s")
    judged: str = column(
        "", "primary metric: the column whose time decides stability, ratio and verdict"
    )
    judged_s: float | None = column(
        "s",
        "primary metric of an epoch: median over the epochs of a process, geometric mean over "
        "processes",
    )
    ci_low_s: float | None = column(
        "s", "lower end of its 95 % interval, Student's t over processes"
    )
    ci_high_s: float | None = column("s", "upper end of its 95 % interval")
    n: int = column(
        "epochs",
        "measured epochs in the comparison of the ratio; for a reference in all comparisons",
    )
    lives: int | None = column("", "fresh processes in which they were measured")
    digest: str = column(
        "", "SHA-256 of the edges sampled in the gate; empty for a sampler of another framework"
    )
    work_class: str = column("", "work compared with the reference's: see below")
    verified: bool | None = column("", "false: only the system itself reports what it sampled")
    reference_s: float | None = column(
        "s", "the reference's primary metric in the rounds of the ratio"
    )
    loss: float | None = column(
        "", "mean training loss of the last measured epoch; empty without compute"
    )
    stopped: str = column(
        "",
        "why measuring ended: called (a verdict), precise (narrow interval), pairs (all of them), "
        "budget (time) or doubt (unreliable)",
    )
    doubtful: str = column("", "why the row is unreliable; empty if it is reliable")
    remark: str = column("", "further information that does not make the row unreliable")
    stand_in_for: str = column("", "missing system that this row replaces")
    status: str = column("", "see below")
    reason: str = column("", "one sentence for a status other than ok, with the fix")
    schema_version: int = column("", f"{VERSION}; tables of another version are refused")


CELLS = CellRow.columns()
