"""Epochs on emulated machines: times by system and link, and bytes sent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gnnbench.analysis import multi_machine
from gnnbench.analysis.multi_machine import Setting
from gnnbench.analysis.plots import bars, style
from gnnbench.analysis.plots.bars import Bar, Panel
from gnnbench.analysis.plots.page import SCREEN, Page
from gnnbench.core.units import seconds
from gnnbench.schema.reader import Run

NAMES = {
    "vanilla": "vanilla", "hybrid": "hybrid", "hybrid-fused": "hybrid, fused",
    "distdgl": "DistDGL",
}  # fmt: skip
PARTS = (("sample_s", "sample"), ("features_s", "memory_io"))
WORDS = {"sample": "sampling", "memory_io": "features", "compute": "training"}
SENT = "sent on all links per step (MB)"


def figure(run: Run, page: Page = SCREEN) -> Figure:
    """A panel of times for each setting, the fastest on top, and one of bytes sent per step."""
    timed = multi_machine.with_times(multi_machine.settings(run.machines))
    scale = f"{multi_machine.steps_of(timed)}, slowest rank [s]"
    panels = [
        Panel(multi_machine.where(s), scale, _times(s), column="time") for s in timed
    ]  # fmt: skip
    widest = max(bars.scale_end(panel.bars) for panel in panels) * bars.ROOM
    panels = [
        Panel(p.title, p.scale, p.bars, column=p.column, widest=widest) for p in panels
    ]  # fmt: skip
    result, axes, hidden = bars.draw(page, [*panels, _sent(timed)])
    first = timed[0]
    caption = (
        f"{first.dataset}, fanouts {first.fanouts}, batch {first.batch_size} a rank, hidden"
        f" {first.hidden}; machines are emulated, they share cores"
    )
    page.head(result, "Epochs on several machines", last=[caption, hidden])
    handles: list[Artist] = [
        Patch(facecolor=style.PHASE_COLOURS[phase], label=words) for phase, words in WORDS.items()
    ]
    handles += [style.interval_key("whole epoch, 95 % interval"), *style.cut_off(axes)]
    if any(setting.noisy_share() for setting in timed):
        handles.append(Line2D([], [], lw=0, label="pale: other programs used the cores too"))
    page.legend(result, handles)
    return result


def _times(setting: Setting) -> list[Bar]:
    drawn = []
    for name in (name for name in NAMES if setting.of(name)):
        whole = setting.time(name, "wall_s")
        if not math.isfinite(whole.value):
            drawn.append(Bar(name, (NAMES[name],), status="failed"))
            continue
        parts = [
            (style.PHASE_COLOURS[phase], setting.time(name, column).value)
            for column, phase in PARTS
        ]
        rest = max(0.0, whole.value - sum(length for _, length in parts))
        drawn.append(
            Bar(
                name, (NAMES[name],), [*parts, (style.PHASE_COLOURS["compute"], rest)],
                whole.value, whole.low, whole.high, text=seconds(whole.value),
                is_reliable=not setting.noisy_share(),
            )
        )  # fmt: skip
    return sorted(drawn, key=lambda bar: (bool(bar.status), bar.value))


def _sent(timed: Sequence[Setting]) -> Panel:
    """Bytes of a step, which do not depend on the link, by number of machines."""
    fastest = max(setting.rate_gbit_s for setting in timed)
    drawn = []
    for setting in (s for s in timed if s.rate_gbit_s == fastest):
        for name in (name for name in NAMES if setting.of(name)):
            size = (setting.per_step(name, "link_sent_bytes") or 0.0) / 1e6
            drawn.append(
                Bar(
                    name, (f"{NAMES[name]}, {setting.machines} machines",),
                    [(style.PALETTE[4], size)], size, is_measured=False, text=f"{size:.3g} MB",
                )
            )  # fmt: skip
    return Panel(SENT, "MB", drawn, column="sent", unit="MB")
