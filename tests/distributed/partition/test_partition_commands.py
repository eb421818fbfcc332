"""The commands and the program of docs/partitions.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

from gnnbench.core import bootstrap
from gnnbench.core.errors import UsageError
from gnnbench.distributed.partition import __main__, command, example

PAGE = Path(__file__).parents[3] / "docs" / "partitions.md"


@pytest.fixture(autouse=True)
def store(tmp_path_factory, monkeypatch):
    """A store of these tests' own."""
    folder = tmp_path_factory.getbasetemp() / "commands"
    monkeypatch.setenv("GNNBENCH_DATA", str(folder))
    monkeypatch.setenv("COLUMNS", "100")


def test_partitions_are_made_and_printed(capsys):
    __main__.make("ogbn_arxiv~twin@0.01", parts="2,3", methods="random,contiguous")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines if line and line[0] in "23"] == [
        ["2", "random"],
        ["2", "contiguous"],
        ["3", "random"],
        ["3", "contiguous"],
    ]
    folders = sorted(Path(os.environ["GNNBENCH_DATA"]).rglob("partition.json"))
    assert [f.parent.name for f in folders] == [
        "contiguous-2-seed0",
        "contiguous-3-seed0",
        "random-2-seed0",
        "random-3-seed0",
    ]


def test_the_example_without_torchrun(capsys, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        # Set first, so that what the example sets is undone.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    example.train("ogbn_arxiv~twin@0.01", "random", "vanilla,hybrid", "3,2", 64, 8, 1, 0)
    assert not dist.is_initialized()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    vanilla, hybrid = (line for line in lines if line and line[0] == "random,")
    assert vanilla[1:5] == ["vanilla", "4", "0.0", "0.0"]
    assert hybrid[1:5] == ["hybrid", "2", "0.0", "0.0"]
    first, last = map(float, vanilla[5:])
    assert [first, last] == pytest.approx([float(loss) for loss in hybrid[5:]], abs=1e-4)


def test_the_program_of_the_page_under_torchrun(tmp_path):
    pytest.importorskip("pymetis")
    program = tmp_path / "train_parts.py"
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    program.write_text(code)
    torchrun = bootstrap.command(sys.executable, "torch.distributed.run")
    done = subprocess.run(
        [*torchrun, "--standalone", "--nproc-per-node", "2", str(program)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"rank (\d): last loss ([\d.]+), {'features': (\d+)}", done.stdout)
    assert sorted(rank for rank, _, _ in lines) == ["0", "0", "1", "1"]
    assert len({loss for _, loss, _ in lines}) == 2  # one of each epoch, the same on both ranks


def test_an_error_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["partition", "ogbn_arxiv~twin@0.01", "--parts", "two"])
    with pytest.raises(SystemExit) as end:
        command.run(__main__.make)
    assert end.value.code == UsageError.exit_code
    error = capsys.readouterr().err
    assert error == "gnnbench: parts must be whole numbers by commas, not 'two'\n"
