"""The environment of planted cheats, and tests that are repeated.

What detects a cheat may be a time, and other tests run at the same time. A test that fails is
therefore repeated, with new runs. What is missed or accused each time is no effect of noise.
"""

from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

HERE = Path(__file__).parent
TRIES = 3


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Run a test up to ``TRIES`` times, until it passes; its reports say how often it failed."""
    if HERE not in item.path.parents:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for failed in range(TRIES):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(report.failed for report in reports):
            break
        if failed + 1 < TRIES:
            item.session._setupstate.teardown_exact(None)  # measure again what fixtures measured
    for report in reports:
        if failed and report.when == "call":
            report.user_properties.append(("failed_before", failed))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patched:
        yield patched
    from gnnbench.core import registry
    from gnnbench.harness import available, environment

    for cache in (registry.entries, available.availability, environment.dataset_state):
        cache.cache_clear()


@pytest.fixture(scope="module")
def native_patch(patch):
    """``patch`` for runs that need the native library."""
    from gnnbench.kernels.library import native_info

    if not native_info()["cpu_built"]:
        pytest.skip("the native library is not built; run 'make install'")
    return patch
