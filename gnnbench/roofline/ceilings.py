"""What the machine at hand can do at most, each ceiling by work that tells that it was done."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gnnbench.kernels import ceilings as ops
from gnnbench.measure import machine
from gnnbench.measure.caches import cpu_caches

MEMORY, SHARED = "memory", "shared"
COPY, READ, ROWS, FMA = "copy", "read", "rows", "fma"
BYTES, FLOPS = "B/s", "flop/s"

WORD = 4
LEAST_BYTES = 1 << 26  # of a copy's source, whatever the caches
GPU_BYTES = 1 << 29
SHARE = 8  # of the memory that there is, at most one part in so many is worked on
ASKED_BYTES = {"cpu": 1 << 25, "cuda": 1 << 28}  # of rows, at random
CACHE_BYTES = {"cpu": 1 << 29, "cuda": 1 << 30}  # read out of a cache, over and over
STEPS = {"cpu": 1 << 21, "cuda": 1 << 14}  # of a chain of multiply-adds
SHARED_STEPS = 1 << 12
MODULUS = 1 << 32


@dataclass(frozen=True)
class Ceiling:
    """Work of which ``amount`` gives how much was done in a run, from what ``run`` returned.

    ``level`` is where the data are: ``memory``, ``L2``, ``L3``, ``shared``, "" of operations.
    ``row_bytes`` are those of rows read at random, else 0; ``unit`` is that of the rate. ``amount``
    raises ``RuntimeError`` where the result is not that of the work. ``remark``: why it may not be
    what it says.
    """

    name: str
    level: str
    unit: str
    run: Callable[[], Tensor | None]
    amount: Callable[[Tensor | None], float]
    row_bytes: int = 0
    remark: str = ""
    level_bytes: int = 0  # that the level holds, of all cores or multiprocessors


class Ceilings:
    """The ceilings of a device, over words 0, 1, 2 ... that are touched once.

    On a CPU they are of torch's present number of threads. What is copied and read from memory is
    four times as large as the last cache, so that none of it is still there, as far as an eighth of
    the memory allows; rows are of ``row_sizes`` bytes, multiples of 4. What runs holds words and
    not these ceilings, so that their memory is free as soon as they are let go.
    """

    def __init__(self, device: torch.device, row_sizes: Collection[int]) -> None:
        self._device = device
        self._caches = _gpu_caches(device) if device.type == "cuda" else cpu_caches()
        half, self._remark = self._room()
        self._source = torch.arange(half // WORD, dtype=torch.int32, device=device)
        self._target = torch.zeros_like(self._source)
        last = max(self._caches.values(), default=half)
        swept = 4 * last if device.type == "cuda" else last * 5 // 4
        self._swept = self._source[: swept // ops.LINE * ops.LINE // WORD]
        ops.copy(self._source, self._target)
        if not torch.equal(self._source, self._target):
            raise RuntimeError("the ceiling of copies left another copy than its source")
        self.all = [self._fma(), self._copy(), self._read(self._source, MEMORY, 1)]
        self.all += self._in_caches()
        self.all += [self._rows(size) for size in sorted({WORD, *row_sizes})]
        holds = self._holds()
        self.all = [replace(c, level_bytes=holds.get(c.level, 0)) for c in self.all]

    def sweep(self) -> None:
        """Leave nothing but words of our own in the caches."""
        ops.read(self._swept)

    def _room(self) -> tuple[int, str]:
        """Bytes of the half that is copied from."""
        last = max(self._caches.values(), default=0)
        if self._device.type == "cuda":
            return max(GPU_BYTES, 2 * last), ""
        wanted = max(LEAST_BYTES, 2 * last) if last else GPU_BYTES
        most = machine.memory_limit_bytes() // SHARE // 2
        half = min(wanted, most) // ops.LINE * ops.LINE
        if not last:
            return half, "sizes of caches are not told"
        if half < last:
            return half, f"{2 * half >> 20} MiB may stay in a cache of {last >> 20}"
        return half, ""

    def _holds(self) -> dict[str, int]:
        """Bytes by level."""
        found = {f"L{level}": size for level, size in self._caches.items()}
        if self._device.type != "cuda":
            return {**found, MEMORY: machine.memory_limit_bytes()}
        gpu = torch.cuda.get_device_properties(self._device)
        shared = gpu.shared_memory_per_multiprocessor * gpu.multi_processor_count
        return {**found, MEMORY: gpu.total_memory, SHARED: shared}

    def _copy(self) -> Ceiling:
        """Bytes read and written."""
        source, target = self._source, self._target
        moved = 2.0 * source.numel() * WORD

        def amount(_: Tensor | None) -> float:
            # Some of it, for all would take longer than the copy.
            if not torch.equal(source[-4096:], target[-4096:]):
                raise RuntimeError("the ceiling of copies left another copy than its source")
            target[-4096:] = 0
            return moved

        return Ceiling(
            COPY, MEMORY, BYTES, lambda: ops.copy(source, target), amount, remark=self._remark
        )

    def _read(self, words: Tensor, level: str, passes: int) -> Ceiling:
        right = _sum_below(words.numel()) * passes % MODULUS
        read = float(words.numel() * WORD * passes)
        remark = self._remark if level == MEMORY else ""
        return Ceiling(
            READ, level, BYTES, lambda: ops.read(words, passes), _checked(right, read, READ),
            remark=remark,
        )  # fmt: skip

    def _in_caches(self) -> list[Ceiling]:
        """Reads out of caches, of as many bytes as surely fit there and not above it."""
        found = []
        asked = CACHE_BYTES[self._device.type]
        for level, size in _cached_sizes(self._caches, self._device.type).items():
            words = self._source[: size // WORD]
            found.append(self._read(words, level, max(asked // size, 1)))
        if self._device.type == "cuda":
            found.append(self._shared())
        return found

    def _shared(self) -> Ceiling:
        source, steps = self._source, SHARED_STEPS
        return Ceiling(READ, SHARED, BYTES, lambda: ops.shared(source, steps), _counted(steps, 1.0))

    def _fma(self) -> Ceiling:
        source, steps = self._source, STEPS[self._device.type]
        return Ceiling(FMA, "", FLOPS, lambda: ops.fma(source, steps), _counted(steps, 2.0))

    def _rows(self, row_bytes: int) -> Ceiling:
        """Rows at random out of memory; those of 4 bytes are reads of single words."""
        width = row_bytes // WORD
        count = self._source.numel() // width
        table = self._source[: count * width].view(count, width)
        generator = torch.Generator(self._device).manual_seed(row_bytes)
        n = max(ASKED_BYTES[self._device.type] // max(row_bytes, 16), 1)
        ids = torch.randint(0, count, (n,), generator=generator, device=self._device)
        # Row r holds r * width + 0, 1 ... width - 1.
        right = (int(ids.sum()) * width * width + n * (width * (width - 1) // 2)) % MODULUS
        return Ceiling(
            ROWS, MEMORY, BYTES, lambda: ops.rows(table, ids),
            _checked(right, float(n * row_bytes), ROWS), row_bytes, self._remark,
        )  # fmt: skip


def _sum_below(n: int) -> int:
    return n * (n - 1) // 2


def _checked(right: int, amount: float, name: str) -> Callable[[Tensor | None], float]:
    def done(result: Tensor | None) -> float:
        assert result is not None
        if int(result) % MODULUS != right % MODULUS:
            raise RuntimeError(f"the ceiling '{name}' read other words than it was to read")
        return amount

    return done


def _counted(steps: int, each: float) -> Callable[[Tensor | None], float]:
    """``each`` of what a result counts, which is so many whole chains."""

    def done(result: Tensor | None) -> float:
        assert result is not None
        count = int(result)
        if count <= 0 or count % steps:
            raise RuntimeError(f"a ceiling's chains of {steps} steps did {count} in all")
        return count * each

    return done


def _gpu_caches(device: torch.device) -> dict[int, int]:
    properties = torch.cuda.get_device_properties(device)
    return {2: int(properties.L2_cache_size)}


def _cached_sizes(caches: dict[int, int], kind: str) -> dict[str, int]:
    """Bytes to read out of each cache: half of a CPU's second cache; of the third four times the
    second, at most half of itself, where that is twice the second; a quarter of a GPU's second,
    whose halves may both hold a line."""
    second, third = caches.get(2, 0), caches.get(3, 0)
    found = {}
    if second:
        found["L2"] = second // (4 if kind == "cuda" else 2) // ops.LINE * ops.LINE
    size = min(4 * second, third // 2) // ops.LINE * ops.LINE
    if second and size >= 2 * second:
        found["L3"] = size
    return found
