"""Hanging the pages into the server: `mount_pages(app, settings)`, under `/ui`."""
from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles

from f1_pipelines.serve.errors import SERVER_FAULT
from f1_pipelines.serve.settings import ServeSettings

PAGES_ROOT = "/ui"


def mount_pages(app: FastAPI, settings: ServeSettings) -> None:
    """Serve the pages under `/ui`, and send whoever opens `/` there.

    Raises:
        RuntimeError: A second time in one process: NiceGUI keeps one application in each.
    """
    from nicegui import app as pages
    from nicegui import core, ui

    from f1_pipelines.serve.pages import compare, evidence, live, operations, predict
    from f1_pipelines.serve.routes.operations import Operations

    live.register(settings)
    predict.register()
    compare.register()
    evidence.register()
    operations.register(Operations(settings.api_key, settings.dagster_url))
    # Not by ui.image(path): its route of a file ends with the first page that shows it and is closed.
    pages.mount(evidence.PICTURES_URL, StaticFiles(directory=evidence.pictures_folder(), check_dir=False))
    # NiceGUI's own page would print the exception, and paths with it.
    pages.on_page_exception(lambda: ui.label(SERVER_FAULT[0].upper() + SERVER_FAULT[1:]))
    # Every page of the web may open NiceGUI's socket by default; ours only pages of this server.
    core.sio.eio.cors_allowed_origins = settings.origins or None
    ui.run_with(app, mount_path=PAGES_ROOT, title="F1 pit wall", favicon="🏁", language="en-US", reconnect_timeout=10.0,
                show_welcome_message=False)

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    def home() -> RedirectResponse:
        return RedirectResponse(f"{PAGES_ROOT}/")
