"""Four processes of one Gloo group that wait for tasks; 1, 2 or all of them do one together."""

import os
import pickle
import socket
import subprocess
import sys
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from gnnbench.core import bootstrap

SIZES = (1, 2, 4)
WAITS = 120  # seconds, for a machine that does other things as well


class Failed(Exception):
    """A rank raised; the text is its traceback."""


class GroupOfFour:
    """The processes; a task is a function of (group, ...) that a module of the tests has."""

    def __init__(self, folder):
        here = Path(__file__).parent
        environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parents[1]}"}
        self._pipes, self._processes = [], []
        for rank in range(4):
            ours, theirs = socket.socketpair()
            with theirs:
                number = theirs.fileno()
                words = [*bootstrap.command(sys.executable, "group_of_four"), str(rank)]
                process = subprocess.Popen(
                    [*words, str(folder / "store"), str(number)],
                    stdin=subprocess.DEVNULL, pass_fds=[number], env=environment,
                )  # fmt: skip
            self._pipes.append(Connection(ours.detach()))
            self._processes.append(process)

    def run(self, task, ranks, *args):
        """What each of ``ranks`` processes returns, rank by rank."""
        words = pickle.dumps((task, ranks, args))
        for pipe in self._pipes[:ranks]:
            pipe.send_bytes(words)
        answers = []
        for pipe in self._pipes[:ranks]:
            assert pipe.poll(WAITS), "a rank does not answer"
            answers.append(pickle.loads(pipe.recv_bytes()))
        for fault, _ in answers:
            if fault:
                raise Failed(fault)
        return [answer for _, answer in answers]

    def close(self):
        """End the processes."""
        for pipe in self._pipes:
            pipe.send_bytes(pickle.dumps(None))
        for process in self._processes:
            try:
                process.wait(WAITS)
            finally:
                process.kill()


def main():
    """Serve as the rank of the arguments: its number, the store's file, the descriptor."""
    import torch
    import torch.distributed as dist

    rank, store, number = int(sys.argv[-3]), sys.argv[-2], int(sys.argv[-1])
    pipe = Connection(number)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=4,
        timeout=timedelta(seconds=WAITS),
    )
    groups = {size: dist.new_group(list(range(size))) for size in SIZES}
    while (words := pickle.loads(pipe.recv_bytes())) is not None:
        task, ranks, args = words
        try:
            answer = "", task(groups[ranks], *args)
        except Exception:
            answer = traceback.format_exc(), None
        pipe.send_bytes(pickle.dumps(answer))
    dist.destroy_process_group()
