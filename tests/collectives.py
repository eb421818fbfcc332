"""Counts the calls of torch.distributed's collectives."""

import inspect
from collections import Counter
from contextlib import contextmanager
from types import FunctionType

import torch.distributed as dist

NONE = (
    "get_",
    "is_",
    "new_",
    "destroy_",
    "split_",
    "shrink_",
    "supports_",
)  # queries, and constructors of groups


def named():
    """Return the names of all public functions of a group: collectives, and sends between two."""
    results = []
    for name, one in vars(dist).items():
        if type(one) is not FunctionType or name.startswith(("_", *NONE)):
            continue
        if {"group", "p2p_op_list"} & inspect.signature(one).parameters.keys():
            results.append(name)
    return results


@contextmanager
def collectives():
    """Count the calls within the block, by name."""
    called, originals = Counter(), {name: getattr(dist, name) for name in named()}

    def counting(name):
        def call(*args, **kwargs):
            called[name] += 1
            return originals[name](*args, **kwargs)

        return call

    for name in originals:
        setattr(dist, name, counting(name))
    try:
        yield called
    finally:
        for name, one in originals.items():
            setattr(dist, name, one)
