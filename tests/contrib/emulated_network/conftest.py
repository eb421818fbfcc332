import pytest
from emulated import MISSING, NAME

from gnnbench.contrib.emulated_network import network


@pytest.fixture(autouse=True)
def no_networks():
    """Removes leftover networks before each test; asserts that the test leaves none."""
    if MISSING:
        yield
        return
    network.remove(NAME)
    yield
    left = network.namespaces(NAME)
    network.remove(NAME)
    assert left == []
