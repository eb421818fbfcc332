import time

import pytest
import torch

from gnnbench.measure.stopwatch import Stopwatch


def test_times_of_blocks_are_summed_until_taken():
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


def test_block_that_raises_is_timed():
    watch = Stopwatch(torch.device("cpu"))
    with pytest.raises(KeyError), watch:
        raise KeyError
    assert watch.take() > 0.0


@pytest.mark.gpu
def test_gpu_time_is_that_of_the_stream():
    watch = Stopwatch(torch.device("cuda"))
    with watch:
        torch.cuda._sleep(100_000_000)  # about 50 ms on the GPU, none on the host
    assert watch.take() > 0.02 and watch.take() == 0.0
