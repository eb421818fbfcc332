import pytest
from group_of_four import GroupOfFour


@pytest.fixture(scope="session")
def four(tmp_path_factory):
    """Processes that take a second to start, once for all tests of the folder."""
    group = GroupOfFour(tmp_path_factory.mktemp("gloo"))
    yield group
    group.close()
