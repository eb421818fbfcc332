"""Nsight Compute's output, assigned to kernels by marks."""

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
UNITS = line("", "", *["sector"] * 4, *["byte"] * 2, *["inst"] * 3).replace('"7"', '""')
NONE = ["0"] * 9
TEXT = "\n".join(
    [
        "==PROF== Connected to process 7", '==PROF== Profiling "aggregate_kernel": 0%',
        HEAD, UNITS,
        line(0, "gnnbench::cuda::ceiling_mark_kernel()", *NONE),
        line(1, "aggregate_kernel", "1,000", "50", "800", "200", "4,096.0", "1024", "64", "8", "0"),
        line(2, "gnnbench::cuda::ceiling_mark_kernel()", *NONE),
        line(3, "scan", "10", "0", "10", "0", "100", "0", "0", "0", "0"),
        line(4, "backward", "30", "10", "30", "20", "300", "50", "1", "2", "3"),
    ]
)  # fmt: skip


def test_launches_are_counted_by_the_preceding_mark():
    first, second = ncu.counts_by_mark(TEXT)
    assert list(first.values()) == [1000, 50, 800, 200, 4096, 1024, 64, 8, 0]
    assert list(second.values()) == [40, 10, 40, 20, 400, 50, 1, 2, 3]
    assert ncu.rates(first) == {
        "l1_hit": 0.05, "l2_hit": 0.25, "memory_bytes": 5120, "flops_run": 72,
    }  # fmt: skip
    assert ncu.rates(second)["flops_run"] == 9
    assert ncu.rates(dict.fromkeys(first, 0.0))["l1_hit"] is None


def test_output_without_a_table_has_no_counts():
    assert ncu.counts_by_mark("==ERROR== ERR_NVGPUCTRPERM - no permission\n") == []
    assert ncu.counts_by_mark("") == []


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
    assert ncu.counted(["true"]) == ncu.counts_by_mark(TEXT)


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


def test_missing_ncu_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCounters, match=r"'ncu' .* is not installed"):
        ncu.counted(["true"])
