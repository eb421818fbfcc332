"""DGL's method, pick and id map per hop; and a variant with FastGL's id map."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.option import Option
from gnnbench.kernels.picks import PICKS
from gnnbench.kernels.sampler import EDGES, ID_MAPS, ROW_WORKERS, hop_by_hop
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.setting import CUMULATIVE, Setting

ROW_WORKER = Option(
    "row_worker",
    "warp",
    "what draws a row on a GPU: warp: a warp, or a block where a reservoir's row is long; block: a"
    " block whatever its degree, as DGL's kernel, with pick=reservoir only",
    ROW_WORKERS,
    added=True,
)
ID_MAP = Option(
    "id_map",
    "three-pass",
    "three-pass: each pass remembers a node's place in the table; three-pass-probing: each pass"
    " probes the table for it again, as DGL's",
    ID_MAPS[:2],
    added=True,
)
EDGES_OPTION = Option(
    "edges",
    "csr",
    "csr: the picks of a row are written one after the other; coo: both ends of each edge, then"
    " the block is built as DGL does, with id_map=three-pass-probing, frontier=cumulative and, on a"
    " GPU, row_worker=block only",
    EDGES,
    added=True,
)


class HopByHop(Sampler):
    """DGL's method (Wang et al., arXiv:1909.01315; id map as its ``OrderedHashTable``).

    Local ids are the order of first occurrence. The default pick is DGL's own on each device. DGL's
    own kernels on a GPU are those of ``row_worker="block"`` and ``id_map="three-pass-probing"``;
    edges and local ids are the same. With ``edges="coo"`` edges are in any order within a row of a
    GPU, too; on the CPU that is the pipeline that FastSample replaces (section 3.2, Fig. 1).
    """

    name = "hop-by-hop"
    summary = "DGL: hop by hop, three-pass id map"
    options: ClassVar[dict[str, Option]] = {o.name: o for o in (ROW_WORKER, ID_MAP, EDGES_OPTION)}

    def __init__(
        self,
        setting: Setting,
        row_worker: str = ROW_WORKER.default,
        id_map: str = ID_MAP.default,
        edges: str = EDGES_OPTION.default,
    ) -> None:
        on_gpu = setting.sampled_on.type == "cuda"
        if row_worker == "block" and not (on_gpu and setting.pick.name == "reservoir"):
            raise UnsupportedError(
                "row_worker 'block' draws reservoirs on a GPU; give pick=reservoir and a topology"
                " that a GPU samples, or row_worker=warp"
            )
        literal = (id_map, setting.frontier, row_worker == "block")
        if edges == "coo" and literal != ("three-pass-probing", CUMULATIVE, on_gpu):
            worker = ", row_worker=block" if on_gpu else ""
            raise UsageError(
                f"edges 'coo' is DGL's whole method; give id_map=three-pass-probing{worker} and"
                " frontier=cumulative with it"
            )
        if edges == "coo" and setting.pick.gives_weights:
            raise UnsupportedError(
                "edges 'coo' is of picks; give edges=csr with pick=random_walk, which has visits"
            )
        super().__init__(setting)
        self._row_worker = row_worker
        self._id_map = id_map
        self._edges = edges

    @classmethod
    def picks_on(cls, device: str) -> tuple[str, ...]:
        """DGL draws by Floyd's method on the CPU and by reservoir on a GPU."""
        default = "floyd" if device == "cpu" else "reservoir"
        return (default, *(pick for pick in PICKS if pick != default))

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw all hops in one dispatch."""
        return hop_by_hop(
            self._indptr,
            self._indices,
            seeds,
            self.fanouts,
            pick=self._pick,
            frontier=self.frontier,
            key=key,
            batch=batch,
            with_positions=with_positions,
            id_map=self._id_map,
            worker=self._row_worker,
            edges=self._edges,
        )


class FusedMapByHop(HopByHop):
    """Fused-Map as in its paper (FastGL, ASPLOS'24, section 4.3): DGL's picks, then the map.

    Only the id map differs from ``hop-by-hop``: one kernel inserts and numbers ids, a second maps
    the edges. ``fused-map`` adds fused picks, one table for all hops and a single wait; these are
    not in the paper.
    """

    name = "fused-map-by-hop"
    summary = "FastGL's paper: DGL's picks hop by hop, then Fused-Map's id map"
    options: ClassVar[dict[str, Option]] = {ROW_WORKER.name: ROW_WORKER}

    def __init__(self, setting: Setting, row_worker: str = ROW_WORKER.default) -> None:
        super().__init__(setting, row_worker)
        self._id_map = "fused"
