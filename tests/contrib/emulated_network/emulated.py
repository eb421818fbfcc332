"""The network name and the root requirement of the tests of emulated networks."""

import os

import pytest

from gnnbench.contrib.emulated_network import network

NAME = f"gnnbench-test{os.getpid()}"  # unique to this process
MISSING = network.missing()
needs_root = pytest.mark.skipif(bool(MISSING), reason=MISSING)
