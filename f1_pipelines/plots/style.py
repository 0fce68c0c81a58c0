"""Shared style of the plots: font sizes legible at README width, colour-blind-safe colours (Okabe and Ito), a marker
for each policy, and conversion to files.
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
# Names that need more than spaces for underscores.
NAMES = {"sft": "SFT", "grpo": "GRPO", "virtual_safety_car_window": "VSC window"}


def styled_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """Create an empty figure with automatic layout."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), dpi=DPI, layout="constrained", facecolor="white")


def png_of(figure: Figure) -> bytes:
    """Convert a figure to a PNG."""
    content = io.BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def svg_of(figure: Figure) -> bytes:
    """Convert a figure to an SVG with text as text; equal figures give equal bytes."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "f1", "svg.fonttype": "none"}):
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()


def policy_style(policy: str) -> dict[str, Any]:
    """Colour and marker of a policy; grey for scripted policies other than expert and oracle."""
    return {"color": COLOURS.get(policy, FAINT), "marker": MARKERS.get(policy, "o")}


def display_name(name: str) -> str:
    """Name of a policy or family to display.

    >>> display_name("sft"), display_name("late_safety_car")
    ('SFT', 'late safety car')
    """
    return NAMES.get(name, name.replace("_", " "))


def style_axes(axes: Axes, title: str = "") -> None:
    """Style axes: no top and right frame, small labels, a faint grid in the background."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL_PT, color=FAINT, labelcolor=INK, length=2)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, fontsize=TEXT_PT, color=INK, loc="left")
