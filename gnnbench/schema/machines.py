"""``machines.csv``."""

from __future__ import annotations

from dataclasses import dataclass

from gnnbench.schema.column import Record, column


@dataclass(slots=True, kw_only=True, eq=False)
class MachineRow(Record):
    """An epoch of one rank: a row of ``machines.csv``."""

    dataset: str = column("", "graph")
    system: str = column("", "vanilla, hybrid, hybrid-fused (FastSample's Fig. 6) or distdgl")
    partition: str = column("", "dgl: DGL's METIS, for all systems; otherwise gnnbench's method")
    machines: int = column("", "emulated machines, one rank each")
    rate_gbit_s: float = column("Gbit/s", "rate of each machine's link, in each direction")
    delay_s: float = column("s", "delay added by each link, in each direction")
    fanouts: str = column("", "fanouts from the seeds outwards, joined by '/'")
    hops: int = column("", "number of hops")
    batch_size: int = column("", "seeds of a rank's batch")
    hidden: int = column("", "width of hidden layers")
    life: int = column("", "number of the trial (a set of fresh processes), from 0")
    order: int | None = column(
        "", "position of the epoch in its trial, equal for both programs of the trial"
    )
    first: bool | None = column("", "whether this program ran before the other one of its trial")
    warmup: bool | None = column("", "warm-up epoch, in no statistic")
    epoch: int | None = column("", "epoch number (part of the key of gnnbench's random numbers)")
    rank: int | None = column("", "rank, from 0; one for each machine")
    copy_gbit_s: float | None = column(
        "Gbit/s", "rate of a copy from machine 1 to 2 right before the epoch"
    )
    others_cores: float | None = column(
        "cores", "CPU time of other programs / duration of the trial"
    )
    wall_s: float | None = column("s", "epoch, from a barrier of all ranks to the end of this rank")
    sample_s: float | None = column("s", "time in the sampler, including waits for other ranks")
    features_s: float | None = column(
        "s", "fetching feature rows (distdgl: and labels), including waits"
    )
    steps: int | None = column("", "batches")
    seeds: int | None = column("", "seeds of all batches")
    sampled_edges: int | None = column("", "edges of all batches")
    input_nodes: int | None = column("", "input nodes of all batches")
    rounds: int | None = column(
        "", "number of all-to-alls; for distdgl twice the requests to other machines"
    )
    size_calls: int | None = column("", "number of small all-to-alls that exchange sizes")
    reduces: int | None = column("", "number of all-reduces")
    sample_bytes: int | None = column(
        "B", "bytes sent to other ranks for sampling, counted by the program"
    )
    features_bytes: int | None = column(
        "B", "bytes sent to other ranks for features, counted by the program"
    )
    size_bytes: int | None = column(
        "B", "bytes sent to other ranks by the small all-to-alls, counted by the program"
    )
    reduced_bytes: int | None = column("B", "bytes of all-reduces")
    link_sent_bytes: int | None = column(
        "B", "bytes sent on the machine's link, counted by the kernel"
    )
    link_received_bytes: int | None = column(
        "B", "bytes received on the machine's link, counted by the kernel"
    )
    first_loss: float | None = column(
        "", "loss of the first step, mean over the seeds of all ranks"
    )
    last_loss: float | None = column("", "loss of the last step, likewise")
    loss_gap: float | None = column("", "largest |loss - vanilla's| of the epoch's steps")
    status: str = column(
        "", "ok, or how the trial failed; a failed trial has a row for each system"
    )
    reason: str = column("", "why it failed; all measured columns are then empty")


MACHINES = MachineRow.columns()
