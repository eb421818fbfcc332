"""Tables are printed on a terminal of any width, also one that says it has none."""

import pytest

from gnnbench.core import console as output
from gnnbench.core import terminal


@pytest.mark.parametrize("columns,room", [(0, 80), (1, 20), (19, 20), (20, 20), (40, 40)])
def test_a_terminal_has_room_for_a_word(monkeypatch, capsys, columns, room):
    made = terminal.console

    def console(stderr=False, width=None):
        found = made(stderr, columns if width is None else width)
        found._force_terminal = True
        return found

    monkeypatch.setattr(terminal, "console", console)
    assert output.room() == room
    output.say("one sentence of several words")
    output.print_table("runs", [{"run": "breakdown", "profile": "laptop"}])
    out = capsys.readouterr().out
    assert "breakdown" in out and "laptop" in out
