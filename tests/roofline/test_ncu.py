"""Nsight Compute's output, assigned to kernels by marks."""

import math
import stat

import pytest

from gnnbench.roofline import ncu
from gnnbench.roofline.perf import NoCounters

NAMES = list(ncu.METRICS.values())


def line(number, kernel, *values):
    cells = [str(number), "7", "python", "127.0.0.1", kernel, "1", "7", *values]
    return ",".join(f'"{cell}"' for cell in cells)


HEAD = ",".join(
    f'"{name}"'
    for name in ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context",
                 "Stream", *NAMES]
)  # fmt: skip
UNITS = line("", "", *["sector"] * 4, *["byte"] * 2, *["inst"] * 3, "ns", "%", "%").replace(
    '"7"', '""'
)
NONE = ["0"] * 12
TEXT = "\n".join(
    [
        "==PROF== Connected to process 7", '==PROF== Profiling "aggregate_kernel": 0%',
        HEAD, UNITS,
        line(0, "gnnbench::cuda::ceiling_mark_kernel()", *NONE),
        line(1, "aggregate_kernel", "1,000", "50", "800", "200", "4,096.0", "1024", "64", "8", "0",
             "70", "40.5", "5"),
        line(2, "gnnbench::cuda::ceiling_mark_kernel()", *NONE),
        line(3, "scan", "10", "0", "10", "0", "100", "0", "0", "0", "0", "20", "1", "2"),
        line(4, "backward", "30", "10", "30", "20", "300", "50", "1", "2", "3", "10", "60", "30"),
        line(5, "backward", "0", "0", "0", "0", "0", "0", "0", "0", "0", "30", "20", "10"),
    ]
)  # fmt: skip


def counts(text, metrics=ncu.METRICS):
    return [ncu.summed(launches, metrics) for launches in ncu.launches_by_mark(text, metrics)]


def test_launches_are_counted_by_the_preceding_mark():
    first, second = counts(TEXT)
    assert list(first.values())[:10] == [1000, 50, 800, 200, 4096, 1024, 64, 8, 0, 70]
    assert list(second.values())[:10] == [40, 10, 40, 20, 400, 50, 1, 2, 3, 60]
    one, two = ncu.launches_by_mark(TEXT)
    assert [launch.kernel for launch in two] == ["scan", "backward", "backward"]
    assert ncu.rates(one) == {
        "l1_hit": 0.05, "l2_hit": 0.25, "memory_bytes": 5120, "flops_run": 72,
        "compute_throughput": 0.405, "memory_throughput": 0.05,
    }  # fmt: skip
    assert ncu.rates(two)["flops_run"] == 9


def test_throughput_is_of_the_longest_kernel_weighted_by_time():
    """Two launches of ``backward``, 10 ns at 60 % and 30 ns at 20 %."""
    rates = ncu.rates(ncu.launches_by_mark(TEXT)[1])
    assert rates["compute_throughput"] == pytest.approx(0.3)
    assert rates["memory_throughput"] == pytest.approx(0.15)


def test_nothing_launched_has_no_rates():
    rates = ncu.rates([])
    assert rates["l1_hit"] is None and rates["compute_throughput"] is None


def test_output_without_a_table_has_no_counts():
    assert ncu.launches_by_mark("==ERROR== ERR_NVGPUCTRPERM - no permission\n") == []
    assert ncu.launches_by_mark("") == []


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Installs a fake ncu that writes a text to its log file."""

    def make(text, code=0, words=""):
        program = tmp_path / "ncu"
        (tmp_path / "text").write_text(text)
        program.write_text(
            "#!/bin/sh\n"
            'while [ "$1" != --log-file ]; do shift; done\n'
            f'cp {tmp_path}/text "$2"\necho "{words}" >&2\nexit {code}\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def test_ncu_is_run_and_its_output_is_read(tool):
    tool(TEXT)
    assert ncu.launched(["true"]) == ncu.launches_by_mark(TEXT)
    assert ncu.counted(["true"]) == counts(TEXT)


@pytest.mark.parametrize(
    ("text", "code", "words", "reason"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM", 1, "", "read nothing: ERR_NVGPUCTRPERM"),
        (TEXT, 9, "RuntimeError: no such graph", "read nothing: RuntimeError: no such graph"),
        ("", 0, "", "read nothing: it wrote no kernel"),
    ],
)
def test_failed_ncu_gives_the_reason(tool, text, code, words, reason):
    tool(text, code, words)
    with pytest.raises(NoCounters, match=reason):
        ncu.counted(["true"])


def test_other_metrics_are_counted_by_their_names():
    text = TEXT.replace(NAMES[0], "pcie__read_bytes.sum")
    assert counts(text, {"link": "pcie__read_bytes.sum"}) == [{"link": 1000}, {"link": 40}]


def test_a_launch_that_cannot_be_counted_makes_its_sum_unknown():
    first, second = counts(TEXT.replace('"300"', '"n/a"'))
    assert math.isnan(second["read_bytes"]) and second["written_bytes"] == 50
    assert first["read_bytes"] == 4096


@pytest.mark.parametrize("quote", ["", '"'])
def test_available_metrics_are_those_that_ncu_lists(tmp_path, monkeypatch, quote):
    program = tmp_path / "ncu"
    listed = f"{quote}pcie__read_bytes{quote} Counter byte '# of bytes'"
    program.write_text(f"#!/bin/sh\ncat <<'END'\nDevice H100\n----\n{listed}\nEND\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    wanted = {"link": "pcie__read_bytes.sum", "other": "pcie__read_bytes_more.sum"}
    assert ncu.available(wanted) == {"link": "pcie__read_bytes.sum"}
    program.write_text("#!/bin/sh\necho '==ERROR== no device'\nexit 1\n")
    with pytest.raises(NoCounters, match="'ncu' listed no metrics: no device"):
        ncu.available(wanted)


def test_missing_ncu_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCounters, match=r"'ncu' .* is not installed"):
        ncu.counted(["true"])
    with pytest.raises(NoCounters, match=r"'ncu' .* is not installed"):
        ncu.available(ncu.HOST_METRICS)
