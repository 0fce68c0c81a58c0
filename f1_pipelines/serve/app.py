"""The FastAPI application of `f1 serve`: `create_app(serve_settings())`."""
from __future__ import annotations

from fastapi import FastAPI

from f1_pipelines.serve.errors import add_error_handlers
from f1_pipelines.serve.middleware import add_limits
from f1_pipelines.serve.openenv.sockets import add_openenv
from f1_pipelines.serve.routes import episodes, operations, predictions, simulate
from f1_pipelines.serve.settings import ServeSettings


def create_app(settings: ServeSettings, pages: bool = True) -> FastAPI:
    """Build the application: environment server, simulator, predictions, operations, pages.

    Args:
        pages: Whether to serve the NiceGUI pages. A process can hold only one application with pages.
    """
    # No /docs: that page loads scripts from other hosts. /openapi.json is served.
    app = FastAPI(title="F1 pit wall", version="1.0.0", description="Race engineer environment, race simulator, "
                  "predictions and operations.", docs_url=None, redoc_url=None)
    add_error_handlers(app)
    add_openenv(app, settings)
    for part in (episodes, simulate, predictions, operations):
        app.include_router(part.router(settings))
    if pages:
        from f1_pipelines.serve.pages.mount import mount_pages

        mount_pages(app, settings)
    add_limits(app, settings)
    return app
