"""More cores than the cell has threads."""

import threading
from dataclasses import dataclass
from multiprocessing import get_context

import torch
from adversarial.bases import Stage, Store, recipe, sampler, schedule, store

from gnnbench.core.stage import option
from gnnbench.pipelines.serial import SerialSchedule


def gather(table, ids, out):
    """Copy rows one by one: slow, and without Python's lock for the most part."""
    for begin in range(0, ids.numel(), 512):
        torch.index_select(table, 0, ids[begin : begin + 512].long(), out=out[begin : begin + 512])


class OneThread(Store):
    """Honest: a slow gather by one thread."""

    repeats = 15

    def timed(self, batch):
        ids = batch.input_nodes
        rows = self._ring.rows(ids.numel())
        self.copy(ids, rows)
        self.count(ids.numel(), "host")
        return rows

    def copy(self, ids, rows):
        for _ in range(self.repeats):
            gather(self._table, ids, rows)


class TwoThreads(OneThread):
    """Half of the rows by each of two threads."""

    def copy(self, ids, rows):
        half = ids.numel() // 2
        other = threading.Thread(target=super().copy, args=(ids[half:], rows[half:]))
        other.start()
        super().copy(ids[:half], rows[:half])
        other.join()


class HelperThread(OneThread):
    """A fifth of the rows by a second thread: it uses less than a helper may."""

    def copy(self, ids, rows):
        some = ids.numel() * 4 // 5
        other = threading.Thread(target=super().copy, args=(ids[some:], rows[some:]))
        other.start()
        super().copy(ids[:some], rows[:some])
        other.join()


class OwnSchedule(SerialSchedule):
    """The serial schedule by another name: how many threads it uses is not examined."""


@dataclass(frozen=True)
class Workers(type(sampler(Stage))):
    """A sampler with an option that has the name of a loader's number of processes."""

    workers: int = option(1, "processes that do not exist", range(9))


class AChild(OneThread):
    """Half of the rows by a process that shares the memory."""

    def __init__(self, job):
        super().__init__(job)
        self.here, there = get_context("fork").Pipe()
        self.rows = torch.empty((1 << 16, self._table.shape[1])).share_memory_()
        child = get_context("fork").Process(target=self.serve, args=(there,), daemon=True)
        child.start()

    def serve(self, pipe):
        torch.set_num_threads(1)
        while (ids := pipe.recv()) is not None:
            super().copy(torch.from_numpy(ids), self.rows[: ids.size])
            pipe.send(True)

    def copy(self, ids, rows):
        half = ids.numel() // 2
        self.here.send(ids[half:].numpy())
        super().copy(ids[:half], rows[:half])
        self.here.recv()
        rows[half:] = self.rows[: ids.numel() - half]


ONE_THREAD = recipe(features=store(OneThread))
TWO_THREADS = recipe(features=store(TwoThreads))
HELPER_THREAD = recipe(features=store(HelperThread))
OWN_SCHEDULE = recipe(features=store(TwoThreads), schedule=schedule(OwnSchedule))
WORKERS = recipe(features=store(TwoThreads), sampler=Workers())
A_CHILD = recipe(features=store(AChild))
