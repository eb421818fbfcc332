"""The example of docs/library.md runs as printed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_example_runs(tmp_path, monkeypatch):
    section = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    documented = re.findall(r"`([a-z-]+)`", section.split("lists names")[1].split("which loses")[0])
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, PAGE, "exec"), names)
    batch, x, src, dst, row = (names[key] for key in ("batch", "x", "src", "dst", "row"))
    assert len(batch.blocks) == 3 and x.shape[0] == batch.input_nodes.numel()
    assert (src[:dst] == batch.seeds).all() and 0 < row.numel() <= 15
    assert {s.name for s in names["gnnbench"].samplers()} == set(documented)
