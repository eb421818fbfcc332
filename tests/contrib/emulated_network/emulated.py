"""What tests of emulated machines share."""

import os

import pytest

from gnnbench.contrib.emulated_network import network

NAME = f"gnnbench-test{os.getpid()}"  # of a network that nobody else has
WHY = network.missing()
needs_root = pytest.mark.skipif(bool(WHY), reason=WHY)
