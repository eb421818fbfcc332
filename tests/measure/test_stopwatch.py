import time

import pytest
import torch

from gnnbench.measure.stopwatch import Stopwatch


def test_what_is_within_is_added_up_and_taken_once():
    watch = Stopwatch(torch.device("cpu"))
    assert watch.take() == 0.0
    begin = time.perf_counter()
    for _ in range(3):
        with watch:
            time.sleep(0.002)
        time.sleep(0.01)
    whole = time.perf_counter() - begin
    assert 0.006 <= watch.take() < whole - 0.03
    assert watch.take() == 0.0


def test_what_raises_is_timed_as_well():
    watch = Stopwatch(torch.device("cpu"))
    with pytest.raises(KeyError), watch:
        raise KeyError
    assert watch.take() > 0.0


@pytest.mark.gpu
def test_on_a_gpu_it_is_the_time_of_the_stream():
    watch = Stopwatch(torch.device("cuda"))
    with watch:
        torch.cuda._sleep(100_000_000)  # some 50 ms of the GPU, none of the host
    assert watch.take() > 0.02 and watch.take() == 0.0
