"""The grid of page-ordered reads: default, refusals, its option, and the kernels that use it."""

from types import SimpleNamespace

import pytest
import torch
from stores import Locked

from gnnbench.analysis.labels import fits, labels
from gnnbench.core.cell import Cell, flat
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.features import Cache, Match, Uva, Window, single_pass, uva
from gnnbench.features.cache import StaticCache
from gnnbench.features.match import MatchStore
from gnnbench.features.policies.policy import Policy
from gnnbench.features.sieve import SieveCache
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.features.window import WindowStore
from gnnbench.kernels.access import ACCESSES, PAGE_ORDERED, READERS
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import from_plain

PATHS = {
    "features.blocks": {"features": "uva"},
    "features.table.blocks": {"features": "match", "features.table": "uva"},
    "features.table.table.blocks": {
        "features": "window", "features.table": "cache", "features.table.table": "uva",
    },
}  # fmt: skip


def test_it_has_a_default_that_is_the_same_when_given():
    assert Uva().resolved("cuda") == Uva(blocks=READERS) == Uva(blocks=READERS).resolved("cuda")
    assert Uva(blocks=1).resolved("cuda").blocks == 1
    assert Uva(blocks=65535).resolved("cuda").blocks == 65535
    for spec in (Cache(), Match(), Window(), Window(holds="union")):
        assert spec.resolved("cuda").table.blocks == READERS
    assert Window(table=Cache(table=Uva(blocks=3))).resolved("cuda").table.table.blocks == 3


@pytest.mark.parametrize("path", PATHS)
def test_a_recipe_has_the_grid_at_any_depth(path):
    recipe = find("baseline").definition.changed({**PATHS[path], path: 4})
    plain_recipe = recipe.resolved("cuda").plain()
    assert flat(plain_recipe)[path] == 4
    assert from_plain("baseline", plain_recipe).resolved("cuda").plain() == plain_recipe
    plain = recipe.changed({path: 0}).resolved("cuda").plain()
    assert flat(plain)[path] == READERS
    cell = {"system": "baseline", "device": "cuda", "env": ""}
    rows = [{**cell, "recipe": r} for r in (plain_recipe, plain)]
    assert [labels(rows).system(r) for r in rows] == [
        f"baseline {path}=4", f"baseline {path}={READERS}",
    ]  # fmt: skip
    assert fits(rows[0], f"baseline {path}=4") and not fits(rows[1], f"baseline {path}=4")


@pytest.mark.parametrize("access", [a for a in ACCESSES if a != PAGE_ORDERED])
def test_other_ways_of_access_have_no_such_grid(access):
    """Their recipes, and so their cells' ids, are those of before there was one."""
    words = f"blocks=4 caps the grid of access=page-ordered alone, not of {access}; give"
    with pytest.raises(UnsupportedError, match=words):
        Uva(access=access, blocks=4).resolved("cuda")
    with pytest.raises(UnsupportedError, match=words):
        Match(table=Cache(table=Uva(access=access, blocks=4))).resolved("cuda")
    spec = Uva(access=access).resolved("cuda")
    assert spec.plain() == {"name": "uva", "access": access, "memory": "registered"}
    both = [{"system": "s", "recipe": {"features": s.plain()}} for s in (spec, Uva(blocks=16))]
    assert labels(both).system(both[0]) == f"s features.access={access}"
    assert labels(both).system(both[1]) == "s features.access=page-ordered"


def test_what_it_cannot_be():
    for wrong in (-1, 65536, 1.5, True, "all"):
        with pytest.raises(UsageError, match=r"'uva'\.blocks cannot be .*; it is 0 to 65535"):
            Uva(blocks=wrong)
    with pytest.raises(UnsupportedError, match="features 'uva' does not run on cpu"):
        Uva(blocks=4).resolved("cpu")
    with pytest.raises(UnsupportedError, match=r"features.table=uva needs a GPU"):
        Cache(table=Uva(blocks=4)).resolved("cpu")
    with pytest.raises(UsageError, match=r"features 'host' has no setting 'blocks'"):
        find("baseline").definition.changed({"features": "host", "features.blocks": 4})


TABLE = torch.arange(40.0).view(10, 4)


@pytest.fixture
def reader(monkeypatch):
    """A store of 7 blocks whose kernels are stood in for on the CPU, and the grids they got."""
    grids = []

    def zero_copy(table, ids, access, blocks, out=None):
        grids.append(blocks)
        return torch.index_select(table, 0, ids.long(), out=out)

    def gather_over(table, kept, slots, generations, generation, ids, hits, remember, blocks):
        return zero_copy(table, ids, "", blocks)

    def gather_once(table, batches, distinct, out):
        return torch.index_select(table, 0, torch.cat(batches).long(), out=out)

    monkeypatch.setattr(uva, "LockedTensor", Locked)
    monkeypatch.setattr(uva, "gather_zero_copy", zero_copy)
    monkeypatch.setattr(uva, "gather_once", gather_once)
    monkeypatch.setattr(single_pass, "gather_over", gather_over)
    graph = SimpleNamespace(
        name="t", features=TABLE, num_nodes=10, train_idx=torch.arange(10),
        indices=torch.arange(10, dtype=torch.int32),
    )  # fmt: skip
    job = Job(Cell("e", "s", "t", ""), graph, Counts(), 1)
    return job, Uva(blocks=7).build(job), grids


STORES = {
    "uva": lambda job, under: under,
    "match": MatchStore,
    "window": lambda job, under: WindowStore(job, under, 2),
    "cache": lambda job, under: StaticCache(job, Policy.named("degree"), 0.3, 0, under),
    "cache sieve": lambda job, under: SieveCache(job, 0.3, 0, under),
}


@pytest.mark.parametrize("name", STORES)
def test_whoever_reads_the_table_reads_it_by_as_many_blocks(reader, name):
    """A window that holds its batches' rows: ``test_overlap_stores``."""
    job, under, grids = reader
    assert isinstance(under, ZeroCopyGather)
    store = STORES[name](job, under)
    store.prepare(lambda epoch: [])
    for ids in [1, 5, 9], [2, 5]:
        batch = SimpleNamespace(input_nodes=torch.tensor(ids, dtype=torch.int32))
        assert torch.equal(store.load(batch), TABLE[ids])
    assert grids == [7, 7]
    store.close()
