"""Memory by component: sizes known to the byte, and sums that equal the peak."""

import pytest
import torch
from compose import make as compose
from compose import run

from gnnbench.systems.runtime import memory
from gnnbench.systems.runtime.memory import Account

pytestmark = pytest.mark.usefixtures("one_thread")
KNOWN = {
    "process", "topology", "sampler", "blocks", "features", "rows", "model", "activations",
    "order", "other",
}  # fmt: skip


def measure_memory(graph, name="baseline", settings=None, **changes):
    system = compose(graph, name, settings or {}, setup=False, **changes)
    facts = system.memory(1 << 30)
    values = {(f["stage"], f["name"]): f["value"] for f in facts}
    assert len(values) == len(facts) and not any(f["where"] for f in facts)
    at_peak = {c: n for (c, name), n in values.items() if name == "memory_bytes"}
    most = {c: n for (c, name), n in values.items() if name == "memory_most_bytes"}
    return system, at_peak, most


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("baseline", {}), ("baseline", {"features": "match", "schedule": "prefetch"}),
        ("baseline", {"features": "window", "order": "greedy"}),
        ("tsota", {"features.ratio": 0.2}), ("dgl", {}), ("pyg", {}),
    ],
)  # fmt: skip
def test_components_add_up_to_the_peak(name, settings, small_graph):
    system, at_peak, most = measure_memory(small_graph, name, settings)
    peak = at_peak.pop("epoch")
    assert sum(at_peak.values()) == peak > 0
    assert all(size >= 0 for size in at_peak.values()) and set(at_peak) <= KNOWN
    assert all(at_peak[c] <= most[c] for c in at_peak if c != "other")
    assert most["setup"] > 0
    report = run(system, 1)  # the measured epoch leaves nothing to be audited
    assert report.ok, report.reason
    system.close()


def test_known_components_are_exact(small_graph):
    system, at_peak, most = measure_memory(small_graph)
    parameters = sum(p.nbytes for p in system.trainer.model.parameters())
    steps = 4 * len(list(system.trainer.model.parameters()))
    # Parameters and what they were before, gradients, Adam's means, squares and steps.
    assert at_peak["model"] == 5 * parameters + steps
    tables = sum(getattr(small_graph, a).nbytes for a in ("indptr", "indices"))
    assert 0 < at_peak["topology"] <= tables
    row = small_graph.features.shape[1] * 4
    seeds = system.order.batches(1 << 30, "cpu")
    drawn = [system.stages.sampler.sample(s, 1 << 30, n) for n, s in enumerate(seeds[:4])]
    assert most["rows"] == max(batch.input_nodes.numel() for batch in drawn) * row
    assert most["blocks"] == max(memory.spanned_bytes(batch.tensors()) for batch in drawn)
    assert most["activations"] > most["rows"] // 4
    system.close()


def test_match_stores_one_more_batch_and_a_table_of_ids(small_graph):
    systems = [measure_memory(small_graph, "baseline", {"features": f}) for f in ("host", "match")]
    (_, _, host), (_, _, match) = systems
    ids = 8 * small_graph.num_nodes
    assert match["features"] >= host["features"] + ids
    assert match["rows"] == host["rows"]
    for system, _, _ in systems:
        system.close()


def test_without_training_there_is_no_model(small_graph):
    system, at_peak, most = measure_memory(small_graph, until="memory_io")
    assert "model" not in at_peak and "activations" not in at_peak and most["rows"] > 0
    system.close()
    system, at_peak, most = measure_memory(small_graph, until="sample")
    assert "rows" not in at_peak and most["blocks"] > 0
    system.close()


def test_an_account_divides_the_bytes_of_a_group_by_known_sizes():
    account = Account(torch.device("cpu"))
    with account.watch("sampler"):
        table = torch.empty(100, dtype=torch.uint8)
    sizes = {"topology": 60, "blocks": 0}
    assert account.ready({"sampler": lambda: sizes}) == 100
    with account.watch("sampler"):
        block = torch.empty(30, dtype=torch.uint8)
        torch.empty(15, dtype=torch.uint8)
        sizes["blocks"] = 30
    assert account.at_peak == {"topology": 60, "blocks": 30, "sampler": 55}
    with account.watch("training"):
        torch.empty(10, dtype=torch.uint8)
    assert account.at_peak == {"topology": 60, "blocks": 30, "sampler": 55}  # 140 are fewer
    with account.watch("training"):
        torch.empty(20, dtype=torch.uint8)
    assert account.at_peak == {"topology": 60, "blocks": 30, "sampler": 40, "activations": 20}
    assert account.most == {"topology": 60, "blocks": 30, "sampler": 55, "activations": 20}
    assert account.allocated == {"sampler": 130, "training": 0}
    assert (table.nbytes, block.nbytes) == (100, 30)
