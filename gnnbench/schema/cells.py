"""``cells.csv``: what a user opens first."""

from __future__ import annotations

from gnnbench.core.cell import PHASES
from gnnbench.schema.column import Column

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

# Wherever a ratio stands.
RATIO: tuple[Column, ...] = (
    Column(
        "ratio",
        "float",
        "1",
        "geometric mean over pairs of fresh processes of the reference's judged time / this "
        "system's, each pair's the median over its rounds; above 1 is faster; empty for different "
        "work",
    ),
    Column(
        "ratio_ci_low",
        "float",
        "1",
        "lower end of its interval: Student's t over pairs, 95 % over all looks together",
    ),
    Column("ratio_ci_high", "float", "1", "upper end of its interval"),
    Column("pairs", "int", "", "pairs of fresh processes behind it: the unit of all statistics"),
    Column("rounds", "int", "", "rounds in which both were measured, of all pairs"),
    Column("sd_pair", "float", "", "standard deviation between pairs of the ratio's logarithm"),
    Column("sd_round", "float", "", "the same between rounds of one pair"),
    Column(
        "noise_floor",
        "float",
        "1",
        "largest difference that equal systems show here, in 95 % of comparisons of as many pairs",
    ),
    Column("floor_from", "str", "", "whose spread noise_floor and detectable rest on"),
    Column("detectable", "float", "1", "smallest difference called in 80 % of such comparisons"),
    Column("pairs_needed", "int", "", "of an unclear ratio: about how many pairs would tell"),
    Column(
        "verdict",
        "str",
        "",
        "see below; empty with fewer than 5 pairs, in doubt, or before the last look",
    ),
)

CELLS: tuple[Column, ...] = (
    Column("id", "str", "", "content hash of the work; equal work under two names has one"),
    Column("experiment", "str", "", "name of the definition"),
    Column("system", "str", "", "registered name of the system"),
    Column(
        "env",
        "str",
        "",
        "the Python environment that it ran in (--env); empty: that of the run; see run.json",
    ),
    Column(
        "versions", "str", "", "what ran, as its worker found it: system's packages, torch, Python"
    ),
    Column(
        "reference",
        "str",
        "",
        "system or label of what it was interleaved with; its own name if it is it",
    ),
    Column("reference_id", "str", "", "the reference's id; its own if it is the one"),
    Column("dataset", "str", "", "dataset, with ~twin and @scale where they apply"),
    Column("until", "str", "", "how far an epoch goes: sample, memory_io or compute"),
    Column("model", "str", "", "model; empty without compute"),
    Column("device", "str", "", "cpu or cuda"),
    Column("pick", "str", "", "pick in use, as the gate reported it"),
    Column("frontier", "str", "", "frontier in use, as the gate reported it"),
    Column("law", "str", "", "inclusion law of the pick, as the gate reported it"),
    Column("batch_size", "int", "seeds", "seeds per batch"),
    Column("fanouts", "str", "", "fanouts from the seeds outwards, joined by '/'"),
    Column("hidden", "int", "", "hidden width of the model"),
    Column("learning_rate", "float", "", "learning rate"),
    Column("threads", "int", "", "threads given to each worker"),
    Column("seed", "int", "", "seed of sampling, order and weights"),
    Column("max_batches", "int", "", "batches after which an epoch is cut; 0: never"),
    Column(
        "evaluate",
        "str",
        "",
        "neighbours over which the model is evaluated after each epoch: sampled (by the fanouts) or"
        " all; empty: it is not",
    ),
    Column("gpus", "int", "", "GPUs that train; empty on a CPU"),
    Column("recipe", "str", "", "the resolved recipe, stage by stage, as JSON"),
    Column("nodes", "int", "", "nodes of the graph"),
    Column("edges", "int", "", "directed edges of the graph"),
    Column("train_nodes", "int", "", "size of the training set"),
    Column("feature_dim", "int", "", "width of a feature row"),
    Column("features", "str", "", "where the features come from, as the store says"),
    Column("batches", "int", "", "batches of a measured epoch"),
    Column("epoch_batches", "int", "", "batches that a whole epoch has"),
    Column("seeds", "int", "", "seeds of a measured epoch"),
    Column(
        "sampled_edges",
        "int",
        "",
        "edges drawn in a measured epoch, median; of systems that drew the same a little more or"
        " less where they measured other numbers of epochs",
    ),
    Column("unique_nodes", "int", "", "input nodes of all batches of an epoch, median"),
    *(
        Column(
            f"{phase}_time_s", "float", "s", f"{phase} phase of an epoch, busy time, as judged_s"
        )
        for phase in PHASES
    ),
    Column("overlap_s", "float", "s", "time of an epoch in which phases overlap, as judged_s"),
    Column("idle_s", "float", "s", "time of an epoch in which no phase is busy, as judged_s"),
    Column("epoch_wall_s", "float", "s", "measured wall time of an epoch, as judged_s"),
    Column("judged", "str", "", "column of the time that decides stability, ratio and verdict"),
    Column(
        "judged_s",
        "float",
        "s",
        "that time of an epoch: geometric mean over lives of each life's median",
    ),
    Column("ci_low_s", "float", "s", "lower end of its 95 % interval, by Student's t over lives"),
    Column("ci_high_s", "float", "s", "upper end of its 95 % interval"),
    Column(
        "n",
        "int",
        "epochs",
        "measured epochs: of the comparison that the ratio is of, of a reference all",
    ),
    Column("lives", "int", "", "fresh processes that they were measured in"),
    Column("digest", "str", "", "SHA-256 of the gate's sampled edges; empty for a foreign sampler"),
    Column("work_class", "str", "", "work compared with the reference's: see below"),
    Column("verified", "bool", "", "false: nobody but the system itself vouches for its work"),
    *RATIO,
    Column(
        "reference_s", "float", "s", "the reference's judged time in the same rounds as the ratio"
    ),
    Column(
        "loss", "float", "", "mean training loss of the last measured epoch; empty without compute"
    ),
    Column(
        "stopped",
        "str",
        "",
        "why measuring ended: called, precise, pairs (as many as asked for), budget or doubt",
    ),
    Column("doubtful", "str", "", "why the row should not be trusted as it is; empty if nothing"),
    Column("remark", "str", "", "worth knowing, no reason for doubt"),
    Column("stand_in_for", "str", "", "missing system that this row stands in for"),
    Column("status", "str", "", "see below"),
    Column("reason", "str", "", "one sentence for a status other than ok, with the fix"),
    Column("schema_version", "int", "", f"{VERSION}; tables of another version are refused"),
)
