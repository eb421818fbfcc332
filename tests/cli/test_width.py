"""Output on terminals of any width, including those that report a width of 0."""

import pytest

from gnnbench.core import console as output
from gnnbench.core import terminal


@pytest.mark.parametrize("columns,width_used", [(0, 80), (1, 20), (19, 20), (20, 20), (40, 40)])
def test_narrow_terminal_gets_complete_output(monkeypatch, capsys, columns, width_used):
    make = terminal.console

    def console(stderr=False, width=None):
        narrow = make(stderr, columns if width is None else width)
        narrow._force_terminal = True
        return narrow

    monkeypatch.setattr(terminal, "console", console)
    assert output.room() == width_used
    output.say("one sentence of several words")
    output.print_table("runs", [{"run": "breakdown", "profile": "laptop"}])
    out = capsys.readouterr().out
    assert "breakdown" in out and "laptop" in out
