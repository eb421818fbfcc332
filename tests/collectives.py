"""Which of torch.distributed's collectives a piece of code calls."""

import inspect
from collections import Counter
from contextlib import contextmanager
from types import FunctionType

import torch.distributed as dist

NONE = ("get_", "is_", "new_", "destroy_", "split_", "shrink_", "supports_")  # ask, or make groups


def named():
    """Every public function that is done by a group: collectives, and messages between two."""
    found = []
    for name, one in vars(dist).items():
        if type(one) is not FunctionType or name.startswith(("_", *NONE)):
            continue
        if {"group", "p2p_op_list"} & inspect.signature(one).parameters.keys():
            found.append(name)
    return found


@contextmanager
def collectives():
    """Counts of the calls made within, by name."""
    called, right = Counter(), {name: getattr(dist, name) for name in named()}

    def noting(name):
        def call(*args, **kwargs):
            called[name] += 1
            return right[name](*args, **kwargs)

        return call

    for name in right:
        setattr(dist, name, noting(name))
    try:
        yield called
    finally:
        for name, one in right.items():
            setattr(dist, name, one)
