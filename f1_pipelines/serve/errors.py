"""Error replies: one sentence in `detail`. They never repeat the request, which may not be valid text."""
from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

SERVER_FAULT = "internal server error; see the server log."


def add_error_handlers(app: FastAPI) -> None:
    """Register the handlers for invalid requests and HTTP errors."""
    app.exception_handler(RequestValidationError)(_validation_error)
    app.exception_handler(HTTPException)(_http_error)


def fault_response(problem: Exception) -> JSONResponse:
    """Log the traceback and return a 500 reply that reveals nothing."""
    logging.getLogger(__name__).error("a request failed", exc_info=problem)
    return JSONResponse({"detail": SERVER_FAULT}, 500)


async def _validation_error(_: Request, problem: RequestValidationError) -> JSONResponse:
    errors = [{"loc": [_encodable(part) for part in error["loc"]], "msg": _encodable(error["msg"]),
               "type": error["type"]}
              for error in problem.errors()]
    return JSONResponse({"detail": errors}, 422)


async def _http_error(_: Request, problem: HTTPException) -> JSONResponse:
    return JSONResponse({"detail": _encodable(problem.detail)}, problem.status_code, problem.headers)


def _encodable(text: object) -> object:
    """Replace lone surrogates, which JSON allows and UTF-8 does not."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text
