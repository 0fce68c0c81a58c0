"""What the pictures of a paper have in common: type that stays legible at README width, colours that everybody can tell
apart (Okabe and Ito), a marker for each policy, and the files.
"""
from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN, DPI = 9.0, 160  # a README shows it 900 pixels wide
TITLE_PT, TEXT_PT, SMALL_PT = 10.0, 8.5, 7.5
INK, FAINT = "#2b2b2b", "#8a8a8a"
COLOURS = {"untrained": "#56b4e9", "sft": "#e69f00", "grpo": "#d55e00", "expert": "#009e73", "oracle": "#000000"}
MARKERS = {"untrained": "v", "sft": "s", "grpo": "D", "expert": "^", "oracle": "*"}
NAMES = {"sft": "SFT", "grpo": "GRPO", "virtual_safety_car_window": "VSC window"}  # that are not read as they stand


def styled_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure that lays itself out."""
    from matplotlib.figure import Figure  # late: half a second that only pictures need

    return Figure(figsize=(width_in, height_in), dpi=DPI, layout="constrained", facecolor="white")


def png_of(figure: Figure) -> bytes:
    """The figure as a PNG."""
    content = io.BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def svg_of(figure: Figure) -> bytes:
    """The figure as an SVG, the same bytes each time; its text stays text."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "f1", "svg.fonttype": "none"}):
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()


def policy_style(policy: str) -> dict[str, Any]:
    """Colour and marker of a policy; scripts that nobody trains towards are grey."""
    return {"color": COLOURS.get(policy, FAINT), "marker": MARKERS.get(policy, "o")}


def display_name(name: str) -> str:
    """A policy or family as a reader reads it.

    >>> name_of("sft"), name_of("late_safety_car")
    ('SFT', 'late safety car')
    """
    return NAMES.get(name, name.replace("_", " "))


def style_axes(axes: Axes, title: str = "") -> None:
    """No frame, small type, a faint grid below everything."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL_PT, color=FAINT, labelcolor=INK, length=2)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, fontsize=TEXT_PT, color=INK, loc="left")
