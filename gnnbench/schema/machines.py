"""``machines.csv``."""

from __future__ import annotations

from dataclasses import dataclass

from gnnbench.schema.column import Record, column


@dataclass(slots=True, kw_only=True, eq=False)
class MachineRow(Record):
    """An epoch of one rank: a row of ``machines.csv``."""

    dataset: str = column("", "graph")
    system: str = column("", "vanilla, hybrid, hybrid-fused (FastSample's Fig. 6) or distdgl")
    partition: str = column("", "dgl: DGL's METIS, of all alike; else gnnbench's method")
    machines: int = column("", "emulated machines, one rank each")
    rate_gbit_s: float = column("Gbit/s", "of each machine's link, each way")
    delay_s: float = column("s", "added by each link, each way")
    fanouts: str = column("", "from the seeds outwards")
    hops: int = column("", "how many fanouts")
    batch_size: int = column("", "seeds of a rank's batch")
    hidden: int = column("", "width of hidden layers")
    life: int = column("", "which set of fresh processes, from 0")
    order: int | None = column(
        "", "place of the epoch in its life; of a life's two programs the same"
    )
    first: bool | None = column("", "whether this program ran before the other one of its life")
    warmup: bool | None = column("", "not in any time")
    epoch: int | None = column("", "number of the epoch, which decides gnnbench's draws")
    rank: int | None = column("", "which machine, from 0")
    copy_gbit_s: float | None = column("Gbit/s", "a copy from machine 1 to 2 right before")
    others_cores: float | None = column("cores", "CPU time of others over the life's time")
    wall_s: float | None = column("s", "epoch, from a barrier of all ranks to this rank's end")
    sample_s: float | None = column("s", "in the sampler, waiting for other ranks included")
    features_s: float | None = column("s", "fetching rows (distdgl: and labels), waiting included")
    steps: int | None = column("", "batches")
    seeds: int | None = column("", "seeds of all batches")
    sampled_edges: int | None = column("", "edges of all batches")
    input_nodes: int | None = column("", "input nodes of all batches")
    rounds: int | None = column("", "all-to-alls; of distdgl twice the requests to other machines")
    size_calls: int | None = column("", "small all-to-alls ahead of those")
    reduces: int | None = column("", "all-reduces")
    sample_bytes: int | None = column(
        "B", "sent to other ranks for sampling, as the program counts"
    )
    features_bytes: int | None = column("B", "sent to other ranks for features, likewise")
    size_bytes: int | None = column("B", "sent to other ranks by the small all-to-alls, likewise")
    reduced_bytes: int | None = column("B", "handed to all-reduces")
    link_sent_bytes: int | None = column("B", "sent on the machine's link, as the kernel counts")
    link_received_bytes: int | None = column("B", "received on it")
    first_loss: float | None = column("", "of the epoch's first step, mean over all ranks' seeds")
    last_loss: float | None = column("", "of its last step")
    loss_gap: float | None = column("", "largest |loss - vanilla's| of the epoch's steps")
    status: str = column("", "ok, or how the life failed, which has a row for each system")
    reason: str = column("", "why it failed; then nothing that is measured is filled")


MACHINES = MachineRow.columns()
