"""Epochs on emulated machines: times by system and link, and bytes sent."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gnnbench.analysis import multi_machine
from gnnbench.analysis.multi_machine import Setting
from gnnbench.analysis.plots.style import PALE, PALETTE, PHASE_COLOURS, panels
from gnnbench.schema.reader import Run

NAMES = {
    "vanilla": "vanilla", "hybrid": "hybrid", "hybrid-fused": "hybrid,\nfused",
    "distdgl": "DistDGL",
}  # fmt: skip
PARTS = (("sample_s", "sample"), ("features_s", "memory_io"))
WORDS = {"sample_s": "sampling", "features_s": "features", "rest": "training"}


def figure(run: Run) -> Figure:
    """A panel of times for each setting, and one of bytes sent per step on all links."""
    timed = multi_machine.with_times(multi_machine.settings(run.machines))
    figure, axes = panels(len(timed) + 1, 3.2, most=len(timed) + 1)
    for ax, setting in zip(axes, timed, strict=False):
        _times(ax, setting)
    top = max(ax.get_ylim()[1] for ax in axes[: len(timed)])
    for ax in axes[: len(timed)]:
        ax.set_ylim(0, top)
    for ax in axes[: len(timed)]:
        place = ax.get_subplotspec()
        if place is not None and place.is_first_col():
            ax.set_ylabel(f"{multi_machine.steps_of(timed)}, slowest rank (s)")
    axes[0].legend(fontsize=8, frameon=False)
    _bytes(axes[-1], timed)
    first = timed[0]
    noisy = any(setting.noisy_share() for setting in timed)
    figure.suptitle(
        f"{first.dataset}, fanouts {first.fanouts}, batch {first.batch_size} a rank, hidden"
        f" {first.hidden}: machines emulated, cores shared"
        + "; pale: other programs used them too"
        * noisy,
        fontsize=10,
    )
    return figure


def _times(ax: Axes, setting: Setting) -> None:
    names = [name for name in NAMES if setting.of(name)]
    alpha = PALE if setting.noisy_share() else None
    for x, name in enumerate(names):
        whole = setting.time(name, "wall_s")
        base = 0.0
        for column, phase in PARTS:
            part = setting.time(name, column).value
            ax.bar(
                x, part, bottom=base, color=PHASE_COLOURS[phase], alpha=alpha,
                label=WORDS[column] if x == 0 else None,
            )  # fmt: skip
            base += part
        ax.bar(
            x, max(0.0, whole.value - base), bottom=base, color=PHASE_COLOURS["compute"],
            alpha=alpha, label=WORDS["rest"] if x == 0 else None,
        )  # fmt: skip
        ends = [[whole.value - whole.low], [whole.high - whole.value]]
        ax.errorbar(x, whole.value, yerr=ends, color="black", capsize=3, lw=1)
    ax.set_xticks(range(len(names)), [NAMES[name] for name in names])
    ax.set_title(multi_machine.where(setting), fontsize=9)


def _bytes(ax: Axes, timed: list[Setting]) -> None:
    rates = {setting.rate_gbit_s for setting in timed}
    one = [setting for setting in timed if setting.rate_gbit_s == max(rates)]
    width = 0.8 / len(NAMES)
    for place, (name, words) in enumerate(NAMES.items()):
        sizes = [(setting.per_step(name, "link_sent_bytes") or 0.0) / 1e6 for setting in one]
        at = [x + (place - 1.5) * width for x in range(len(one))]
        ax.bar(at, sizes, width, label=words.replace("\n", " "), color=PALETTE[place + 3])
    ax.set_xticks(range(len(one)), [f"{setting.machines} machines" for setting in one])
    ax.set_title("sent on all links per step (MB)", fontsize=9)
    ax.legend(fontsize=8, frameon=False)
