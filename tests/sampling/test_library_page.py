"""The example of docs/library.md runs as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_example_runs(tmp_path):
    section = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    check = (
        "\nassert len(batch.blocks) == 3 and x.shape[0] == batch.input_nodes.numel()"
        "\nassert (src[:dst] == batch.seeds).all() and 0 < row.numel() <= 15"
        "\nassert {s.name for s in gnnbench.samplers()} == set(NAMES), gnnbench.samplers()"
    )
    named = re.findall(r"`([a-z-]+)`", section.split("lists names")[1].split("which loses")[0])
    text = f"NAMES = {named!r}\n{code}{check}"
    subprocess.run(
        [sys.executable, "-c", text],
        check=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(PAGE.parents[1]),
            "GNNBENCH_DATA": str(tmp_path / "store"),
        },
    )
