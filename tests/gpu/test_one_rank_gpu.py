"""One rank over NCCL: the code of ranks on a machine with one GPU."""

import pytest
from compose import counted, make, run_alike

pytestmark = pytest.mark.gpu

SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}
PARTS = [
    {"schedule.partition": mode, "schedule.method": "random", "features": store}
    for mode in ("seeds", "vanilla", "hybrid")
    for store in ("host", "gpu")
]


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule.gradients": "flat", "features": "uva"},
        {"schedule.gradients": "ddp", "features": "uva"},
        {"features": "sharded"},
        {"features": "match", "order": "greedy"},
        *PARTS,
    ],
    ids=lambda s: "-".join(map(str, s.values())),
)
def test_single_rank_equals_a_system_without_ranks(settings, small_graph):
    own = {key: value for key, value in settings.items() if not key.startswith("schedule.")}
    store = {"features": "uva"} if own.get("features") == "sharded" else own
    plain = make(small_graph, settings=store, **SMALL)
    ranks = {"schedule": "data-parallel", "schedule.ranks": 1, **settings}
    system = make(small_graph, settings=ranks, **SMALL)
    try:
        checked = system.check()
        assert checked.ok, checked.reason
        for epoch in range(3):
            ours, _ = run_alike(system, plain, epoch)
        counts = counted(ours)
        if settings.get("schedule.partition") in ("vanilla", "hybrid"):
            assert any(name == "exchange_rounds" for _, name, _ in counts)
    finally:
        system.close()
        plain.close()
