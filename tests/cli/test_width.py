"""Tables are printed on a terminal of any width, also one that says it has none."""

import pytest

from gnnbench.core import console as output
from gnnbench.core import terminal


@pytest.mark.parametrize("columns,room", [(0, 80), (1, 20), (19, 20), (20, 20), (40, 40)])
def test_a_narrow_terminal_is_printed_on(monkeypatch, capsys, columns, room):
    make = terminal.console

    def console(stderr=False, width=None):
        narrow = make(stderr, columns if width is None else width)
        narrow._force_terminal = True
        return narrow

    monkeypatch.setattr(terminal, "console", console)
    assert output.room() == room
    output.say("one sentence of several words")
    output.print_table("runs", [{"run": "breakdown", "profile": "laptop"}])
    out = capsys.readouterr().out
    assert "breakdown" in out and "laptop" in out
