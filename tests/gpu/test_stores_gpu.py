"""Every store and composition on a GPU for hundreds of batches: rows bit by bit, counts by path."""

from dataclasses import replace

import pytest
import torch
from compose import counted, make, run
from stores import STORES, shapes, stress

from gnnbench.core.errors import GpuMemoryError
from gnnbench.features import Host, Uva
from gnnbench.features.host import StagedGather
from gnnbench.features.spec import FallbackSpec

pytestmark = pytest.mark.gpu
PATHS = {"host": "host_copy", "uva": "zero_copy"}
TABLES = {"host": Host(), "uva": Uva(), "naive": Uva(access="naive")}
STEPS = {"host": 4, "uva": 4, "naive": 7}  # every n-th shape; all shapes of each store occur


def over(spec, table):
    """The same composition with another backing store."""
    if not isinstance(spec, FallbackSpec):
        return table
    return replace(spec, table=over(spec.table, table))


@pytest.mark.parametrize(
    ("fetching", "name", "dtype", "width"),
    [(fetching, *one) for fetching, step in STEPS.items() for one in shapes(STORES)[::step]],
)
def test_rows_and_counts_are_correct_for_hundreds_of_batches(fetching, name, dtype, width):
    table = TABLES[fetching]
    stress(over(STORES[name], table), dtype, width, "cuda", PATHS[table.name])


BLOCKS = [1, 2, 64]
READ_BY_BLOCKS = [
    "host", "cache degree", "cache sieve", "match", "window", "match over cache presc#1",
]  # fmt: skip


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("name", [*READ_BY_BLOCKS, "window of a union"])
@pytest.mark.parametrize(("dtype", "width"), [(torch.float32, 129), (torch.bfloat16, 3)])
def test_limited_grid_reads_the_same_rows(blocks, name, dtype, width):
    """Rows and counts by path equal the model, for any number of blocks."""
    union = name == "window of a union"
    spec = replace(STORES["window"], holds="union") if union else STORES[name]
    stress(over(spec, Uva(blocks=blocks)), dtype, width, "cuda", "zero_copy")


@pytest.mark.parametrize(
    "settings",
    [
        {"features": "uva"},
        {"features": "cache", "features.ratio": 0.2, "features.table": "uva"},
        {"features": "match", "features.table": "uva"},
        {"features": "window", "features.table": "uva"},
        {"features": "window", "features.table": "uva", "features.holds": "union"},
    ],
    ids=lambda s: " ".join(map(str, s.values())),
)
def test_counts_do_not_depend_on_the_grid(small_graph, settings):
    """The grid is set by path, also to its default."""
    path = "features.blocks" if settings["features"] == "uva" else "features.table.blocks"
    actual = []
    for blocks in (0, *BLOCKS):
        system = make(
            small_graph, settings={**settings, path: blocks, "sampler.pick": "floyd"},
            until="memory_io", device="cuda", batch_size=20, fanouts=(3, 2),
        )  # fmt: skip
        report = run(system, 3)
        assert report.ok, report.reason
        counts = counted(report)
        actual.append({k: v for k, v in counts.items() if k[1] in ("feature_bytes", "calls")})
        system.close()
    assert actual[0]["features", "feature_bytes", "zero_copy"] > 0
    assert all(one == actual[0] for one in actual)


@pytest.mark.parametrize("table", PATHS)
@pytest.mark.parametrize("above", ["", "match", "window"])
def test_dynamic_cache_has_the_same_hits_as_on_a_cpu(small_graph, above, table):
    """From an empty cache, and from the contents left by the first epoch."""
    prefix = "features.table" if above else "features"
    settings = {"features": above, prefix: "cache", f"{prefix}.policy": "sieve"}
    settings |= {f"{prefix}.ratio": 0.2, "sampler.pick": "floyd"}
    here, there = (
        make(
            small_graph, settings=settings | ({f"{prefix}.table": table} if gpu else {}),
            until="memory_io", device="cuda" if gpu else "cpu", batch_size=20, fanouts=(3, 2),
        )
        for gpu in (False, True)
    )  # fmt: skip
    for epoch in (3, 4):
        right, actual = counted(run(here, epoch)), counted(run(there, epoch))
        key = ("features", "feature_bytes")
        assert actual[*key, "cache"] == right[*key, "cache"] > 0
        assert actual[*key, PATHS[table]] == right[*key, "host"]
    there.close()


@pytest.mark.parametrize("until", ["memory_io", "compute"])
@pytest.mark.parametrize("policy", ["presc#1", "sieve"])
def test_automatic_ratio_follows_the_measured_memory(small_graph, until, policy):
    """A small table fits completely, otherwise the limit decides. Losses stay the same."""
    settings = {"features": "cache", "features.policy": policy, "features.ratio": "auto"}
    whole = make(small_graph, settings=settings, until=until, device="cuda")
    counts = {name: value for _, name, _, value in whole.setup_counts}
    assert (counts["cache_ratio"], counts["cache_rows"]) == (1, 400)
    assert counts["uncached_peak_bytes"] > 0 and counts["uncached_time_s"] > 0
    limit = {"features.memory_gib": 100 * 96 / 2**30}
    part = make(small_graph, settings=settings | limit, until=until, device="cuda")
    counts = {name: value for _, name, _, value in part.setup_counts}
    assert (counts["cache_ratio"], counts["cache_rows"]) == (0.25, 100)
    plain = make(small_graph, settings={"features": "host"}, until=until, device="cuda")
    reports = [run(system, 5) for system in (plain, whole, part)]
    assert all(r.ok for r in reports), [r.reason for r in reports]
    assert len({r.unique_nodes for r in reports}) == 1
    if until == "compute":
        assert reports[1].loss == pytest.approx(reports[0].loss, rel=1e-4)
    for system in (plain, whole, part):
        system.close()


def test_cache_that_does_not_fit_the_gpu(small_graph, monkeypatch):
    # Rows too large for staging on the host are reported first.
    monkeypatch.setattr(
        StagedGather, "_locked", lambda _, shape, dtype: torch.empty(0, dtype=dtype)
    )
    huge = replace(small_graph, features=small_graph.features[:, :1].expand(-1, 1 << 40))
    with pytest.raises(GpuMemoryError, match=r"a feature cache of ratio 0\.5 takes .* the GPU has"):
        make(
            huge, settings={"features": "cache", "features.ratio": 0.5, "features.table": "host"},
            until="memory_io", device="cuda",
        )  # fmt: skip
