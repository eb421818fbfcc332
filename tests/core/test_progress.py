"""Progress without a terminal: few plain lines."""

from gnnbench.core.progress import Display


def progress_lines(capsys, quiet):
    now = [0.0]
    with Display(quiet, clock=lambda: now[0]) as display:
        display.plan(2, 300.0)
        display.step("products: preparing", 0.0)
        for second, text in enumerate(["gcn baseline: starting", "gcn dgl: starting"]):
            now[0] = float(second)
            display.step(text, 0.0)
        for second in range(2, 130):
            now[0] = float(second)
            display.step("gcn dgl: pair 1, round 2", 0.25)
        display.pair_done()
        display.step("gcn pyg: starting", 0.0)
        display.pair_done()
        display.step("drawing", 0.0)
    return capsys.readouterr().err.splitlines()


def test_step_is_printed_when_it_begins_and_once_a_minute(capsys):
    assert progress_lines(capsys, quiet=False) == [
        "1 of 2: products: preparing",
        "1 of 2: gcn baseline: starting",
        "1 of 2: gcn dgl: starting",
        "1 of 2: gcn dgl: pair 1, round 2 (25%)",
        "1 of 2: gcn dgl: pair 1, round 2 (25%)",
        "2 of 2: gcn pyg: starting",
        "drawing",
    ]


def test_quiet_is_silent(capsys):
    assert progress_lines(capsys, quiet=True) == []


def test_preparation_is_printed_every_ten_seconds(capsys):
    now = [0.0]
    with Display(False, clock=lambda: now[0]) as display:
        display.plan(1, 0.0)
        for second in range(25):
            now[0] = float(second)
            display.step(f"edges: {second} MiB of 25 MiB", second / 25)
    assert capsys.readouterr().err.splitlines() == [
        "edges: 10 MiB of 25 MiB",
        "edges: 20 MiB of 25 MiB (80%)",
    ]
