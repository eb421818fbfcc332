"""A stream limited to some multiprocessors of a GPU: results, errors, and memory IO on it."""

import pytest
import torch
from compose import make, run

from gnnbench.core.errors import UsageError
from gnnbench.kernels.sm_budget import limited_stream

pytestmark = pytest.mark.gpu


def device():
    return torch.device("cuda", torch.cuda.current_device())


@pytest.mark.parametrize("sms", [8, 16, 32])
def test_limited_stream_gives_correct_results_in_event_order(sms):
    stream, given = limited_stream(device(), sms)
    every = torch.cuda.get_device_properties(device()).multi_processor_count
    assert sms <= given <= min(sms + 8, every)
    assert limited_stream(device(), sms).stream is stream
    x = torch.arange(1 << 20, device="cuda")
    torch.cuda._sleep(20_000_000)
    x.add_(1)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2
        assert torch.cuda.current_stream() == stream
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.equal(y.cpu(), (torch.arange(1 << 20) + 1) * 2)


def test_more_multiprocessors_than_available_are_refused():
    for wrong in (0, 100_000):
        with pytest.raises(UsageError, match="sms must be at"):
            limited_stream(device(), wrong)


@pytest.mark.parametrize("store", ["host", "uva", "gpu", "match", "window", "cache"])
def test_memory_io_on_a_limited_stream_is_correct(store, small_graph, one_thread):
    settings = {"schedule": "prefetch", "schedule.sms": 8, "features": store}
    system = make(small_graph, settings=settings, batch_size=20, fanouts=(3, 2), device="cuda")
    assert system.check().ok
    for epoch in range(5):
        report = run(system, epoch)
        assert report.ok, report.reason
    assert system.recheck(7) == ""
    system.close()
