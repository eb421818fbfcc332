"""All attacks, by family."""

from adversarial.attack import LONG, SMALL, Attack

# What attacks are compared with, or what runs before one of them.
HONEST = {
    "plain": "adversarial.bases:PLAIN",
    "one-thread": "adversarial.threads:ONE_THREAD",
    "shares": "adversarial.outside:SHARES",
}
ROWS = "gathered feature rows differ from the feature table"
OTHER_EDGES = "it drew other edges than the reference, not so at the gate"
NO_COPIES = "0 batches were copied aside where at least [0-9]+ were chosen"
PRIORITY = "the priority of a thread was changed"
LAYERS = "after timing: forward values on the fixed block are off"
SAMPLED = "after timing: forward values of a sampled batch are off"
REPLACED = "was replaced in the process that is measured"

LAZY = [
    Attack("lazy:LAZY_ROWS", "memory_io", ROWS),
    Attack("lazy:ROWS_BY_THREAD", "memory_io", ROWS),
    Attack("lazy:META_ROWS", "memory_io", "gathered feature rows must be a dense tensor"),
    Attack("lazy:ONE_ROW", "memory_io", ROWS),
    Attack("lazy:FIRST_ROWS", "memory_io", ROWS),
    Attack("lazy:HALF_PRECISION_ROWS", "memory_io", ROWS),
    Attack("lazy:HALF_THE_ROWS", "memory_io", ROWS),
    Attack("lazy:LAZY_BLOCKS", "sample", "a batch must contain plain tensors, blocks and integers"),
]  # fmt: skip
CLAIMS = [
    Attack("claims:FIXED_PICKS", "sample", "its picks are not 'without-repl", reference="plain"),
    Attack("claims:CLAIMS_EXACT", "sample", "its picks are not 'without-repl", reference="plain"),
    Attack("claims:CLAIMS_OURS", "sample", "'mappingproxy' object has no", reference="plain"),
    Attack("claims:FOREIGN_LAW", "sample", "different work", reference="plain"),
    Attack("claims:CHANGES_ITS_LAW", "sample", "the sampler's law is", reference="plain"),
    Attack(
        "claims:CHANGES_ITS_FRONTIER", "sample", "met [0-9]+ nodes where the reference met",
        reference="plain",
    ),
    Attack(
        "claims:SHUFFLED_WINDOW", "sample", "its picks are not 'without-repl", reference="plain",
    ),
    Attack("claims:POOL", "sample", "its picks are not 'without-repl", reference="plain"),
]  # fmt: skip
ORDER = [
    Attack("order:SAME_BATCHES", "sample", OTHER_EDGES),
    Attack("order:UNEVEN_BATCHES", "sample", OTHER_EDGES),
    Attack(
        "order:UNEVEN_BATCHES_OWN", "sample", "met [0-9]+ nodes where the reference met",
        reference="plain",
    ),
    Attack("order:FEW_SEEDS", "sample", "holds a training node twice in an epoch"),
    Attack("order:SAMPLES_IN_ORDER", "sample", "are in no phase", size=LONG),
    Attack("order:ERASES_FAULTS", "memory_io", NO_COPIES),
    Attack("order:CACHED_EPOCH", "sample", OTHER_EDGES),
    Attack(
        "order:CACHED_EPOCH_OWN", "sample", "s of 'sample' a batch|its picks are not",
        reference="plain",
    ),
    Attack("order:UNTRAINED", "compute", "s of 'compute' a batch where that takes"),
    Attack(
        "order:GATHERS_OUTSIDE", "memory_io", "s of 'memory_io' a batch where|are in no phase",
        size=LONG,
    ),
]  # fmt: skip
OTHER_WORKER = [
    Attack("other_worker:STOPS", "sample", "was stopped by a signal"),
    Attack("other_worker:TRACES", "sample", "is traced|no gain", size=LONG),
    Attack("other_worker:FREEZES", "sample", "control group|no gain", size=LONG),
    Attack("other_worker:RENICES", "sample", PRIORITY),
    Attack("other_worker:IDLES", "sample", PRIORITY),
    Attack(
        "other_worker:HOGS", "sample",
        "threads were idle|after they had ended|after each epoch|of a core|cores busy with|no gain",
        size=LONG,
    ),
    Attack("other_worker:DROPS_PAGES", "sample"),
]  # fmt: skip
MORE_CORES = "cores busy with 1 thread|no gain"
THREADS = [
    Attack("threads:TWO_THREADS", "memory_io", MORE_CORES, reference="one-thread", size=SMALL),
    Attack("threads:HELPER_THREAD", "memory_io", MORE_CORES, reference="one-thread", size=SMALL),
    Attack("threads:OWN_SCHEDULE", "memory_io", MORE_CORES, reference="one-thread", size=SMALL),
    Attack("threads:WORKERS", "memory_io", MORE_CORES, reference="one-thread", size=SMALL),
    Attack("threads:A_CHILD", "memory_io", reference="one-thread", size=SMALL, always=False),
]  # fmt: skip
PATCHES = [
    Attack("patches:STALE_ROWS", "memory_io", ROWS),
    Attack("patches:WITHOUT_FEATURE_CHECK", "memory_io", REPLACED),
    Attack("patches:HONEST_COPIES", "memory_io", REPLACED),
    Attack(
        "patches:HONEST_FOR_A_MOMENT", "memory_io", size=SMALL, always=False,
        passes="code is compared after commands: a replacement that is undone before is not seen",
    ),
    Attack("patches:ONLY_THE_KEY", "sample", REPLACED),
    Attack("patches:ONLY_THE_KEY_ROWS", "memory_io", REPLACED),
    Attack(
        "patches:KNOWS_THE_ROUND", "memory_io", ROWS + "|many checked batches",
        options=("rounds=100",),  # about six copies that it cannot foresee
    ),
    Attack("patches:NO_VERIFIER", "sample", REPLACED),
    Attack("patches:NO_RECORD", "sample", REPLACED),
    Attack("patches:DRAWS_IN_AUDIT", "sample", REPLACED),
    Attack("patches:NO_PROBE", "sample", REPLACED),
    Attack("patches:WITHIN_TOLERANCE", "sample", REPLACED),
    Attack("patches:REPORTS_EARLY", "sample", REPLACED + "|does not support item assignment"),
]  # fmt: skip
PRECISION = [
    Attack("precision:HALF_THE_EDGES", "compute", LAYERS),
    Attack("precision:HALF_THE_EDGES_OWN", "compute", LAYERS, reference="plain", gains=False),
    Attack("precision:BFLOAT16", "compute", LAYERS, gains=False),
    Attack("precision:BFLOAT16_IF_LARGE", "compute", SAMPLED, gains=False),
    Attack("precision:ALWAYS_BFLOAT16", "compute", "forward values on the fixed block are off"),
    Attack("precision:WITHOUT_GRADIENT", "compute", "after timing: gradients of the input rows"),
    # A CPU without bfloat16 multiplies in float32, whatever the setting of torch.
    Attack("precision:LOWERS_PRECISION", "compute", LAYERS + "|no gain"),
]  # fmt: skip
OUTSIDE = [
    Attack("outside:FORESIGHT", "memory_io", size=LONG),
    Attack("outside:OwnLoop", "sample", "when every batch was checked|unverified"),
    Attack("verified_loop:VerifiedLoop", "sample", REPLACED),
    Attack("outside:FORGED_JOURNAL", size=SMALL),
    Attack("outside:SLOW_BASELINE", size=SMALL),
    Attack("outside:VARIABLES", size=SMALL),
    Attack("outside:EDITS_SAMPLES", size=SMALL),
    Attack(
        "outside:SHARES_AGAIN",
        "compute",
        "no gain",  # no two trials have the same epochs
        reference="plain",
        after="shares",
        options=("evaluate=sampled",),
    ),
    Attack("outside:READS_SAMPLES", size=SMALL),
]  # fmt: skip
ATTACKS = [
    *OUTSIDE,
    *LAZY, *CLAIMS, *ORDER, *OTHER_WORKER, *THREADS, *PATCHES, *PRECISION,
]  # fmt: skip
FEATURES = "gathered feature rows differ|rows must be"
ON_GPU = [
    Attack("gpu_attacks:TF32", "compute", LAYERS, gains=False),
    Attack("gpu_attacks:AUTOCAST", "compute", LAYERS, gains=False),
    Attack("gpu_attacks:FLOAT16", "compute", LAYERS, gains=False),
    Attack("gpu_attacks:NO_WAIT", "sample", REPLACED),
    Attack("gpu_attacks:SHORT_EVENTS", "sample", REPLACED),
    Attack(
        "gpu_attacks:OTHER_STREAM",
        "memory_io",
        always=False,
        passes="phases are measured on the current stream, and rows arrive before they are read",
    ),
    Attack("gpu_attacks:LATE_LAUNCH", "memory_io", FEATURES),
    Attack("gpu_attacks:STALE_ROWS", "memory_io", FEATURES),
    Attack(
        "gpu_attacks:HALF_ROWS",
        "memory_io",
        always=False,
        passes="features of generated graphs are numbers that float16 represents exactly",
    ),
]
