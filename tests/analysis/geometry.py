"""Where the parts of a figure are, in pixels of a drawn canvas."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

SLACK = 1.0  # pixels: texts are placed with a precision of one


def drawn(figure):
    """Lay a figure out as when it is drawn, without pixels; returns its renderer."""
    canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    return canvas.get_renderer()


def texts(figure):
    """All texts of a figure that are drawn and not empty."""
    hidden = {id(label) for ax in figure.axes for label in _hidden_labels(ax)}
    return [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


def _hidden_labels(ax):
    """Labels of ticks outside of the scale, which are not drawn."""
    for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not min(ends) <= tick.get_loc() <= max(ends):
                yield from (tick.label1, tick.label2)


def outside(figure, renderer):
    """Texts that are not within the canvas."""
    width, height = figure.bbox.width, figure.bbox.height
    return [
        text.get_text()
        for text in texts(figure)
        if (box := text.get_window_extent(renderer))
        and not (
            min(box.x0, box.y0) >= -SLACK
            and box.x1 <= width + SLACK
            and box.y1 <= height + SLACK
        )
    ]  # fmt: skip


def legends_on_panels(figure, renderer):
    """Titles of panels that a legend covers, with their labels."""
    legends = [*figure.legends, *filter(None, (ax.get_legend() for ax in figure.axes))]
    boxes = [legend.get_window_extent(renderer).padded(-SLACK) for legend in legends]
    return [
        ax.get_title()
        for ax in figure.axes
        for box in boxes
        if box.overlaps(ax.get_tightbbox(renderer))
    ]


def smallest_text(figure):
    """Size of the smallest text (pt)."""
    return min(text.get_fontsize() for text in texts(figure))


def overlapping(figure, renderer):
    """Pairs of texts that cover each other: names, columns, titles and headings."""
    found, visible = [], {id(text) for text in texts(figure)}
    for ax in figure.axes:
        shown = [
            *ax.get_yticklabels(), ax.title, ax.xaxis.label,
            *(t for t in ax.texts if t.get_gid() in ("column", "heading")),
        ]  # fmt: skip
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in shown if id(t) in visible]
        for n, (first, box) in enumerate(boxes):
            found += [
                (first, other)
                for other, second in boxes[n + 1 :]
                if box.padded(-SLACK).overlaps(second.padded(-SLACK))
            ]
    return found
