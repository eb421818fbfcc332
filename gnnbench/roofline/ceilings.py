"""Measured peak rates of this machine; each benchmark verifies that it did its work."""

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
SHARE = 8  # at most 1/SHARE of the memory is used
ASKED_BYTES = {"cpu": 1 << 25, "cuda": 1 << 28}  # of rows, at random
CACHE_BYTES = {"cpu": 1 << 29, "cuda": 1 << 30}  # read out of a cache, over and over
STEPS = {"cpu": 1 << 21, "cuda": 1 << 14}  # of a chain of multiply-adds
SHARED_STEPS = 1 << 12
MODULUS = 1 << 32


@dataclass(frozen=True)
class Ceiling:
    """A benchmark of a peak rate: ``amount`` computes the work done from the result of ``run``.

    ``level`` is the location of the data: ``memory``, ``L2``, ``L3``, ``shared``, "" for
    operations. ``row_bytes`` is the size of rows read at random, else 0; ``unit`` is that of the
    rate. ``amount`` raises ``RuntimeError`` for a wrong result. ``remark`` says why the rate may
    be unreliable.
    """

    name: str
    level: str
    unit: str
    run: Callable[[], Tensor | None]
    amount: Callable[[Tensor | None], float]
    row_bytes: int = 0
    remark: str = ""
    level_bytes: int = 0  # capacity of the level, over all cores or multiprocessors


class Ceilings:
    """The peak rates of a device, measured on an array of the integers 0, 1, 2 ...

    On a CPU they use torch's current number of threads. The array that is copied and read from
    memory is four times as large as the last cache, so that nothing is cached, but at most an
    eighth of the memory. Rows have ``row_sizes`` bytes, multiples of 4.
    """

    def __init__(self, device: torch.device, row_sizes: Collection[int]) -> None:
        self._device = device
        self._caches = _gpu_caches(device) if device.type == "cuda" else cpu_caches()
        half, self._remark = self._source_bytes()
        self._source = torch.arange(half // WORD, dtype=torch.int32, device=device)
        self._target = torch.zeros_like(self._source)
        last = max(self._caches.values(), default=half)
        swept = 4 * last if device.type == "cuda" else last * 5 // 4
        self._swept = self._source[: swept // ops.LINE * ops.LINE // WORD]
        ops.copy(self._source, self._target)
        if not torch.equal(self._source, self._target):
            raise RuntimeError("the copy of the peak 'copy' differs from its source")
        self.all = [self._fma(), self._copy(), self._read(self._source, MEMORY, 1)]
        self.all += self._in_caches()
        self.all += [self._rows(size) for size in sorted({WORD, *row_sizes})]
        capacities = self._capacities()
        self.all = [replace(c, level_bytes=capacities.get(c.level, 0)) for c in self.all]

    def sweep(self) -> None:
        """Evict all other data from the caches."""
        ops.read(self._swept)

    def _source_bytes(self) -> tuple[int, str]:
        """Bytes of the source of a copy, and a remark where it may fit in a cache."""
        last = max(self._caches.values(), default=0)
        if self._device.type == "cuda":
            return max(GPU_BYTES, 2 * last), ""
        wanted = max(LEAST_BYTES, 2 * last) if last else GPU_BYTES
        most = machine.memory_limit_bytes() // SHARE // 2
        half = min(wanted, most) // ops.LINE * ops.LINE
        if not last:
            return half, "sizes of caches are unknown"
        if half < last:
            return half, f"{2 * half >> 20} MiB may stay in a cache of {last >> 20}"
        return half, ""

    def _capacities(self) -> dict[str, int]:
        """Bytes by level."""
        caches = {f"L{level}": size for level, size in self._caches.items()}
        if self._device.type != "cuda":
            return {**caches, MEMORY: machine.memory_limit_bytes()}
        gpu = torch.cuda.get_device_properties(self._device)
        shared = gpu.shared_memory_per_multiprocessor * gpu.multi_processor_count
        return {**caches, MEMORY: gpu.total_memory, SHARED: shared}

    def _copy(self) -> Ceiling:
        """Bytes read and written."""
        source, target = self._source, self._target
        moved = 2.0 * source.numel() * WORD

        def amount(_: Tensor | None) -> float:
            # Only the end: comparing all of it would take longer than the copy.
            if not torch.equal(source[-4096:], target[-4096:]):
                raise RuntimeError("the copy of the peak 'copy' differs from its source")
            target[-4096:] = 0
            return moved

        return Ceiling(
            COPY, MEMORY, BYTES, lambda: ops.copy(source, target), amount, remark=self._remark
        )

    def _read(self, words: Tensor, level: str, passes: int) -> Ceiling:
        count = words.numel()
        expected = count * (count - 1) // 2 * passes % MODULUS
        read = float(words.numel() * WORD * passes)
        remark = self._remark if level == MEMORY else ""
        return Ceiling(
            READ, level, BYTES, lambda: ops.read(words, passes), _checked(expected, read, READ),
            remark=remark,
        )  # fmt: skip

    def _in_caches(self) -> list[Ceiling]:
        """Reads from caches, of sizes that fit in one level but not in the level above it."""
        ceilings = []
        total = CACHE_BYTES[self._device.type]
        for level, size in _cached_sizes(self._caches, self._device.type).items():
            words = self._source[: size // WORD]
            ceilings.append(self._read(words, level, max(total // size, 1)))
        if self._device.type == "cuda":
            ceilings.append(self._shared())
        return ceilings

    def _shared(self) -> Ceiling:
        source, steps = self._source, SHARED_STEPS
        return Ceiling(READ, SHARED, BYTES, lambda: ops.shared(source, steps), _counted(steps, 1.0))

    def _fma(self) -> Ceiling:
        source, steps = self._source, STEPS[self._device.type]
        return Ceiling(FMA, "", FLOPS, lambda: ops.fma(source, steps), _counted(steps, 2.0))

    def _rows(self, row_bytes: int) -> Ceiling:
        """Random rows from memory; rows of 4 bytes are reads of single words."""
        width = row_bytes // WORD
        count = self._source.numel() // width
        table = self._source[: count * width].view(count, width)
        generator = torch.Generator(self._device).manual_seed(row_bytes)
        n = max(ASKED_BYTES[self._device.type] // max(row_bytes, 16), 1)
        ids = torch.randint(0, count, (n,), generator=generator, device=self._device)
        # Row r holds r * width + 0, 1 ... width - 1.
        expected = (int(ids.sum()) * width * width + n * (width * (width - 1) // 2)) % MODULUS
        return Ceiling(
            ROWS, MEMORY, BYTES, lambda: ops.rows(table, ids),
            _checked(expected, float(n * row_bytes), ROWS), row_bytes, self._remark,
        )  # fmt: skip


def _checked(expected: int, amount: float, name: str) -> Callable[[Tensor | None], float]:
    def done(result: Tensor | None) -> float:
        assert result is not None
        if int(result) % MODULUS != expected % MODULUS:
            raise RuntimeError(
                f"the sum of the peak '{name}' is wrong: it read other words than it should"
            )
        return amount

    return done


def _counted(steps: int, each: float) -> Callable[[Tensor | None], float]:
    """``each`` per multiply-add; a result must count whole chains of ``steps``."""

    def done(result: Tensor | None) -> float:
        assert result is not None
        count = int(result)
        if count <= 0 or count % steps:
            raise RuntimeError(
                f"the chains of a peak, of {steps} steps each, did {count} steps in all"
            )
        return count * each

    return done


def _gpu_caches(device: torch.device) -> dict[int, int]:
    properties = torch.cuda.get_device_properties(device)
    return {2: int(properties.L2_cache_size)}


def _cached_sizes(caches: dict[int, int], kind: str) -> dict[str, int]:
    """Bytes to read from each cache.

    Half of a CPU's L2; of its L3 four times the L2, at most half the L3, and only where that is at
    least twice the L2. A quarter of a GPU's L2, whose two halves may both cache a line.
    """
    second, third = caches.get(2, 0), caches.get(3, 0)
    sizes = {}
    if second:
        sizes["L2"] = second // (4 if kind == "cuda" else 2) // ops.LINE * ops.LINE
    size = min(4 * second, third // 2) // ops.LINE * ops.LINE
    if second and size >= 2 * second:
        sizes["L3"] = size
    return sizes
