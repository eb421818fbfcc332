"""Output of ``gnnbench list`` and ``gnnbench doctor`` in a terminal."""

import pytest

from gnnbench.core import registry


def test_list_fits_a_screen_and_names_every_system(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = said("list")
    lines = out.splitlines()
    assert (code, err) == (0, "") and len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert all(name in out for name in registry.OURS[registry.SYSTEM])
    assert "breakdown " in out and "gcn" in out


@pytest.mark.parametrize("columns", ["60", "120"])
def test_doctor_prints_a_line_for_each_check(said, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = said("doctor")
    lines = out.splitlines()
    assert code == 0 and max(len(line) for line in lines if "http" not in line) <= int(columns)
    checks = [line for line in lines[: lines.index("")] if not line.startswith("      ")]
    assert all(line.startswith(("ok  ", "no  ")) for line in checks)
    assert any(line.split()[1] == "torch" for line in checks)
    assert "systems that run here: baseline" in out
