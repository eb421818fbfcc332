"""What a run of several machines comes to, from rows that are written out."""

import pytest
from machine_rows import run, write

from gnnbench.analysis import multi_machine
from gnnbench.core.errors import UsageError
from gnnbench.schema.reader import read_machines


def test_times_are_of_the_slowest_rank_and_ratios_within_one_trial():
    (setting,) = multi_machine.settings(run())
    assert multi_machine.where(setting) == "2 machines, 1 Gbit/s"
    assert setting.times("vanilla", "wall_s") == pytest.approx(
        {0: 4.0, 1: 4.04, 2: 4.08, 3: 4.12, 4: 4.16}
    )
    ratio = setting.ratio("vanilla", "hybrid")
    # The machine's drift is in both alike, and so in no ratio.
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))
    assert ratio.n == 5
    assert setting.ratio("vanilla", "hybrid", "sample_s").value == pytest.approx(4.0)
    assert setting.ratio("vanilla", "nothing").n == 0


def test_counts_are_of_a_step_and_of_all_ranks():
    (setting,) = multi_machine.settings(run())
    assert setting.per_step("vanilla", "rounds", over_ranks=False) == 6
    assert setting.per_step("hybrid", "rounds", over_ranks=False) == 2
    assert setting.per_step("vanilla", "sampled_edges") == 800
    assert setting.per_step("vanilla", "features_bytes") == 8000
    assert setting.per_step("distdgl", "features_bytes") is None
    assert setting.loss_gap() == 1e-6


def test_settings_are_apart_by_machines_and_link():
    rows = run() + run(machines=4) + run(rate_gbit_s=10.0)
    assert [multi_machine.where(s) for s in multi_machine.settings(rows)] == [
        "2 machines, 1 Gbit/s",
        "2 machines, 10 Gbit/s",
        "4 machines, 1 Gbit/s",
    ]


def test_a_setting_for_counts_alone_has_no_times():
    rows = run() + run(lives=1, hops=1, fanouts="3", warmup=True)
    assert (
        len(multi_machine.settings(rows)) == 2
        and len(multi_machine.with_times(multi_machine.settings(rows))) == 1
    )
    times, counts, rounds = multi_machine.tables(rows)
    assert [line["name"] for line in times.lines] == ["vanilla", "hybrid", "distdgl"]
    assert [line["vanilla's epoch over"] for line in times.lines] == [
        "", "2 [2, 2]", "0.5 [0.5, 0.5]",
    ]  # fmt: skip
    assert counts.lines[0]["on links kB"] == "14" and counts.lines[2]["features kB"] == ""
    counts = [(line["hops"], line["name"], line["rounds a step"]) for line in rounds.lines]
    assert counts == [("1", "hybrid", "2.00"), ("1", "vanilla", "6.00"), ("3", "hybrid", "2.00"),
                    ("3", "vanilla", "6.00")]  # fmt: skip


def test_noise_is_a_share_of_trials():
    rows = run()
    (setting,) = multi_machine.settings(rows)
    assert setting.noisy_share() == 0
    for row in rows:
        row["others_cores"] = 0.5 if row["life"] == 0 else 0.0
    assert setting.noisy_share() == pytest.approx(0.2)


def test_a_run_is_read_back_with_its_remarks(tmp_path):
    work = (
        '{"work": [{"machines": 2, "of": "edges", "gnnbench": {"n": 8}, "distdgl": {"n": 9},'
        ' "difference": [0.01, -0.01, 0.03]}],'
        ' "distdgl_partitions": {"2": {"cut": 1000, "edges": 4000}}}'
    )
    rows = run()
    rows[-4]["last_loss"] = 1.5
    assert (rows[-4]["system"], rows[-4]["life"]) == ("hybrid", 4)
    write(tmp_path / "run", rows, work)
    again = read_machines(tmp_path / "run")
    assert again.cells == [] and len(again.machines) == 5 * 8
    assert multi_machine.remarks(again) == [
        "A copy between two machines at 1 Gbit/s came to 0.950 [0.950, 0.950] Gbit/s of payload"
        " (5 copies).",
        "Losses of hybrid and vanilla differ by 1e-06 at most, step by step; those of gnnbench's"
        " trials by 0.5.",
        "2 machines: DistDGL's batches have +1.00 % [-1.00, +3.00] edges compared with gnnbench's"
        " (9 and 8 batches).",
        "2 machines: DGL's METIS cuts 1,000 of 4,000 edges.",
    ]
    with pytest.raises(UsageError, match=r"holds no machines\.csv"):
        read_machines(tmp_path)
