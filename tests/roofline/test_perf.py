"""Hardware counters of a process, over all its threads."""

import mmap
import threading

import pytest

from gnnbench.roofline import perf

PAGE_FAULTS = {"faults": (perf.SOFTWARE, 2)}
PAGES = 500


def touch(memory):
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1


def faults(run):
    try:
        return perf.counted(run, PAGE_FAULTS)["faults"]
    except perf.NoCounters as refused:
        pytest.skip(str(refused))


@pytest.fixture
def memory():
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as mapped:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            mapped.madvise(mmap.MADV_NOHUGEPAGE)
        yield mapped


def test_only_the_given_work_is_counted(memory):
    assert faults(lambda: None) < PAGES <= faults(lambda: touch(memory))
    assert faults(lambda: touch(memory)) < PAGES  # all pages are resident


def test_work_of_other_threads_is_counted(memory):
    begin, end = threading.Event(), threading.Event()

    def work():
        begin.wait()
        touch(memory)
        end.set()

    thread = threading.Thread(target=work)
    thread.start()

    def run():
        begin.set()
        end.wait()

    assert faults(run) >= PAGES
    thread.join()


def test_missing_event_is_refused_with_the_reason():
    with pytest.raises(perf.NoCounters, match="gives no counter of the processor's caches \\("):
        perf.counted(lambda: None, {"none": (perf.HARDWARE_CACHE, 0xFFFF)})


def test_rates_of_counts():
    counts = {"l1_reads": 1000, "l1_misses": 200, "last_reads": 50, "last_misses": 10}
    assert perf.rates(counts) == {"l1_hit": 0.8, "l2_hit": 0.75, "memory_bytes": 640}


def test_contradictory_counts_have_no_rate():
    prefetched = {"l1_reads": 1000, "l1_misses": 200, "last_reads": 300, "last_misses": 10}
    assert perf.rates(prefetched) == {"l1_hit": 0.8, "l2_hit": None, "memory_bytes": 640}
    nothing = dict.fromkeys(perf.EVENTS, 0)
    assert perf.rates(nothing) == {"l1_hit": None, "l2_hit": None, "memory_bytes": 0}


def test_multiplexed_count_is_scaled():
    assert perf._scaled(10, 100, 50) == 20
    assert perf._scaled(0, 100, 0) == 0
