"""The frame of every page: header, navigation, light or dark theme, and notices about the data."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar, cast

from nicegui import run, ui

from f1_pipelines.serve.notices import data_notices
from f1_pipelines.serve.published_warehouse import NoWarehouse, published

P = ParamSpec("P")
T = TypeVar("T")
PAGES = (("/", "Live simulator", "sports_motorsports"), ("/predict", "Predict", "leaderboard"),
         ("/compare", "Compare", "compare_arrows"), ("/evidence", "Training results", "insights"),
         ("/operations", "Operations", "tune"))
ACCENT = "#8e24aa"
RESPONSE_TIMEOUT_S = 30.0  # to build a page; long, because the machine may be training at the same time
_THEMES = {"auto": (None, "brightness_auto"), "light": (False, "light_mode"), "dark": (True, "dark_mode")}
_COLOURS = {"SAMPLE": "amber-8", "STALE": "deep-orange-7", "PROVISIONAL": "orange-7"}
_INFORMATION = ("IN-SAMPLE", "SIMULATED", "Computed after the race")  # notices that are no warnings
_CSS = """
.nicegui-content { padding: 0.75rem; }
.q-card { border-radius: 10px; }
.pw-figures { font-variant-numeric: tabular-nums; }
.pw-tyre { display: inline-block; width: 1.6em; height: 1.6em; line-height: 1.5em; border-radius: 50%;
  text-align: center; font-weight: 700; color: #111; border: 1px solid #0006; }
.pw-soft { background: #e8453c; } .pw-medium { background: #f7d23e; } .pw-hard { background: #f0f0f0; }
.pw-inter { background: #4fae5b; } .pw-wet { background: #5b9bd9; }
.pw-ours td { font-weight: 700; background: #8e24aa22; }
.body--dark { --q-primary: #ab47bc !important; }
.pw-link { color: #8e24aa; } .body--dark .pw-link { color: #ce93d8; }
.q-table th { font-weight: 600; }
.q-table td, .q-table th { padding: 3px 8px; }
"""


@contextmanager
def frame(here: str, title: str) -> Iterator[ui.column]:
    """Build a page with header and navigation; yields the column for its content.

    Args:
        here: Path of the page, one of `PAGES`.
        title: Title of the page.
    """
    ui.page_title(f"{title} · F1 pit wall")
    ui.add_css(_CSS)
    ui.colors(primary=ACCENT)
    with ui.left_drawer(value=False, bordered=True).props("overlay behavior=mobile").classes("p-2") as drawer:
        for path, name, icon in PAGES:
            _navigation_button(path, name, icon, here).classes("w-full").props("align=left")
    with ui.header(elevated=True).classes("items-center px-3 py-1 gap-1 bg-grey-10"):
        ui.button(icon="menu", on_click=drawer.toggle).props('flat round color=white aria-label="All pages"').classes(
            "lg:hidden")
        ui.label("F1 pit wall").classes("text-lg font-bold mr-2 whitespace-nowrap")
        with ui.row().classes("gap-0 max-lg:hidden"):
            for path, name, icon in PAGES:
                _navigation_button(path, name, icon, here, "white")
        ui.space()
        _theme_button()
    with ui.column().classes("w-full max-w-screen-xl mx-auto gap-3") as content:
        yield content


def show_notices(sentences: list[str]) -> None:
    """Show notices; the keyword before the colon sets the colour."""
    for sentence in sentences:
        colour = _COLOURS.get(sentence.split(":")[0], "blue-grey-6")
        with ui.row().classes(f"w-full items-center gap-2 no-wrap rounded px-3 py-1 text-white bg-{colour}").props(
                "data-mark=notice"):
            ui.icon("info" if sentence.startswith(_INFORMATION) else "warning", size="sm")
            ui.label(sentence).classes("text-sm")


def warehouse_notices() -> list[str]:
    """Notices about the whole warehouse, or that there is none."""
    try:
        with published() as connection:
            return data_notices(connection).sentences()
    except NoWarehouse as problem:
        return [str(problem)[0].upper() + str(problem)[1:] + "."]


def card(title: str, classes: str = "w-full") -> ui.card:
    """Create a card with a heading; use it as a context manager."""
    titled = ui.card().classes(f"{classes} p-3 gap-1")
    with titled:
        ui.label(title).classes("text-subtitle2 opacity-80")
    return titled


def _navigation_button(path: str, name: str, icon: str, here: str, colour: str | None = None) -> ui.button:
    button = ui.button(name, icon=icon, on_click=lambda: ui.navigate.to(path))
    current = " aria-current=page" if path == here else ""
    return button.props(f"no-caps {'unelevated' if path == here else 'flat'}"
                        f"{f' text-color={colour}' if colour else ''}{current}").classes("px-2")


def _theme_button() -> None:
    """Add the button that switches between auto, light and dark. A cookie stores the choice for other pages."""
    theme = ui.context.client.request.cookies.get("theme", "auto")
    theme = theme if theme in _THEMES else "auto"
    dark = ui.dark_mode(_THEMES[theme][0])
    button = ui.button(icon=_THEMES[theme][1]).props('flat round color=white aria-label="Light or dark"')

    def switch() -> None:
        current = next(name for name, (value, _) in _THEMES.items() if value == dark.value)
        names = list(_THEMES)
        following = names[(names.index(current) + 1) % len(names)]
        dark.value = _THEMES[following][0]
        button.props(f"icon={_THEMES[following][1]}")
        ui.run_javascript(f"document.cookie = 'theme={following}; path=/; max-age=31536000; SameSite=Lax'")

    button.on_click(switch)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` in a thread. NiceGUI returns None instead only while the server stops."""
    return cast("T", await run.io_bound(work, *args, **kwargs))
