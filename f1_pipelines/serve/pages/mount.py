"""Mounts the pages into the server under `/ui`: `mount_pages(app, settings)`."""
from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles

from f1_pipelines.serve.errors import SERVER_FAULT
from f1_pipelines.serve.settings import ServeSettings

PAGES_ROOT = "/ui"


def mount_pages(app: FastAPI, settings: ServeSettings) -> None:
    """Serve the pages under `/ui`, and redirect `/` there.

    Raises:
        RuntimeError: The process has mounted pages before; NiceGUI allows one application per process.
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
    # Static files instead of ui.image(path), whose route disappears when the first page that used it is closed.
    pages.mount(evidence.PICTURES_URL, StaticFiles(directory=evidence.pictures_folder(), check_dir=False))
    # NiceGUI's own error page would print the exception, including paths.
    pages.on_page_exception(lambda: ui.label(SERVER_FAULT[0].upper() + SERVER_FAULT[1:]))
    # By default pages of any site can open NiceGUI's socket; allow only the configured origins.
    core.sio.eio.cors_allowed_origins = settings.origins or None
    ui.run_with(app, mount_path=PAGES_ROOT, title="F1 pit wall", favicon="🏁", language="en-US", reconnect_timeout=10.0,
                show_welcome_message=False)

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    def home() -> RedirectResponse:
        return RedirectResponse(f"{PAGES_ROOT}/")
