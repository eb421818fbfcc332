"""A small definition, read from a file, and what its systems come to without any being there."""

from __future__ import annotations

import textwrap

from gnnbench.config import experiment as ex

SMALL = """
schema_version = 2
[axes]
system = ["a", "b"]
dataset = ["d"]
model = ["m"]
"""


class Made:
    """What a system makes of its settings here: just these."""

    unsupported, composed, lacks = "", True, ()

    def __init__(self, recipe):
        self.recipe = recipe


def resolve(system, settings, device, until):
    return Made({"name": system, **settings})


def write(folder, text, name="mine.toml"):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return str(path)


def load(folder, text, profile="", over=None):
    return ex.resolve(ex.load(write(folder, text)), profile, over)
