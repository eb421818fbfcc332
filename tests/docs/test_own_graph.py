"""Every command and Python block of docs/own-graph.md, run in order."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from gnnbench import cli
from gnnbench.datasets.prepare import load_dataset

TEXT = (Path(__file__).parents[2] / "docs" / "own-graph.md").read_text()


def run(monkeypatch, words):
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


def test_commands_and_blocks_of_the_page_succeed(tmp_path, monkeypatch, capfd):
    pytest.importorskip("torch_geometric")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    Path("edges.txt").write_text("".join(f"{v} {(v * 7 + 1) % 40}\n" for v in range(40)))
    Path("y.txt").write_text("".join(f"{v % 3}\n" for v in range(40)))
    Path("split.txt").write_text("train\n" * 20 + "val\n" * 10 + "test\n" * 10)
    run_python("import numpy as np\nnp.save('x.npy', np.ones((40, 8)))")
    commands = 0
    for language, block in re.findall(r"```(python|sh)\n(.*?)```", TEXT, re.S):
        if language == "python":
            run_python(block)
            continue
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            assert run(monkeypatch, words) in (0, None), (line, capfd.readouterr().err)
            commands += 1
    assert commands == 9
    whole, arrays, links = (load_dataset(name) for name in ("whole", "arrays", "links"))
    assert [whole.meta[k] for k in ("features", "labels", "split")] == ["source"] * 3
    assert arrays.train_idx.tolist() == [0, 1] and arrays.indices.tolist() == [1, 2, 0, 1]
    assert links.indices.tolist() == [0, 0, 1] and links.weights.tolist() == [1, 0.5, 2]
    assert load_dataset("both").weights is None
    assert load_dataset("from_a_file").indices.tolist() == load_dataset("from_pyg").indices.tolist()


def run_python(block):
    exec(compile(block, "own-graph.md", "exec"), {"__name__": "example"})


def test_page_lists_the_array_names_of_the_importers():
    from gnnbench.datasets.importers import edge_arrays, nodes

    for names in (edge_arrays.WEIGHTS, nodes.FEATURES, nodes.LABELS):
        assert ", ".join(f"`{name}`" for name in names) in TEXT
