"""What every page has around it: the name, the way to the others, light or dark, and what must be said of the data."""
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
         ("/compare", "Compare", "compare_arrows"), ("/evidence", "Training evidence", "insights"),
         ("/operations", "Operations", "tune"))
ACCENT = "#8e24aa"
RESPONSE_TIMEOUT_S = 30.0  # for a page to be built, on a machine that trains meanwhile [s]
_THEMES = {"auto": (None, "brightness_auto"), "light": (False, "light_mode"), "dark": (True, "dark_mode")}
_COLOURS = {"SAMPLE": "amber-8", "STALE": "deep-orange-7", "PROVISIONAL": "orange-7", "LOOK": "blue-grey-6",
            "SIMULATED": "blue-grey-6"}
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
    """A page: header, navigation, notices, and a column for its content.

    Args:
        here: Its path, one of `PAGES`.
        title: Its heading.
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
    """What must be said beside data, each in the colour of its first word."""
    for sentence in sentences:
        first = sentence.split(":")[0].split(" ")[0].rstrip(",")
        with ui.row().classes(f"w-full items-center gap-2 no-wrap rounded px-3 py-1 text-white "
                              f"bg-{_COLOURS.get(first, 'blue-grey-6')}").props("data-mark=notice"):
            ui.icon("info" if first in ("LOOK", "Made", "SIMULATED") else "warning", size="sm")
            ui.label(sentence).classes("text-sm")


def warehouse_notices() -> list[str]:
    """What must be said of everything that is stored, or that nothing is."""
    try:
        with published() as connection:
            return data_notices(connection).sentences()
    except NoWarehouse as problem:
        return [str(problem)[0].upper() + str(problem)[1:] + "."]


def card(title: str, classes: str = "w-full") -> ui.card:
    """A card with a heading; use it as a context."""
    made = ui.card().classes(f"{classes} p-3 gap-1")
    with made:
        ui.label(title).classes("text-subtitle2 opacity-80")
    return made


def _navigation_button(path: str, name: str, icon: str, here: str, colour: str | None = None) -> ui.button:
    button = ui.button(name, icon=icon, on_click=lambda: ui.navigate.to(path))
    now = " aria-current=page" if path == here else ""
    return button.props(f"no-caps {'unelevated' if path == here else 'flat'}"
                        f"{f' text-color={colour}' if colour else ''}{now}").classes("px-2")


def _theme_button() -> None:
    """The choice of light and dark. A cookie keeps it, so that the next page begins in it."""
    chosen = ui.context.client.request.cookies.get("theme", "auto")
    chosen = chosen if chosen in _THEMES else "auto"
    dark = ui.dark_mode(_THEMES[chosen][0])
    button = ui.button(icon=_THEMES[chosen][1]).props('flat round color=white aria-label="Light or dark"')

    def turn() -> None:
        now = next(name for name, (value, _) in _THEMES.items() if value == dark.value)
        names = list(_THEMES)
        after = names[(names.index(now) + 1) % len(names)]
        dark.value = _THEMES[after][0]
        button.props(f"icon={_THEMES[after][1]}")
        ui.run_javascript(f"document.cookie = 'theme={after}; path=/; max-age=31536000; SameSite=Lax'")

    button.on_click(turn)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` in a thread, off the event loop. NiceGUI gives None in its place only while the server stops."""
    return cast("T", await run.io_bound(work, *args, **kwargs))
