"""Errors as clients see them: one sentence in `detail`, and nothing of what came, which might not even be text."""
from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

SERVER_FAULT = "the server failed at this; its log says why."


def add_error_handlers(app: FastAPI) -> None:
    """Let the application answer errors this way."""
    app.exception_handler(RequestValidationError)(_validation_error)
    app.exception_handler(HTTPException)(_http_error)


def fault_response(problem: Exception) -> JSONResponse:
    """The reply to a fault of ours: the log has the traceback, the client a sentence."""
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
    """Text without the half characters that JSON allows and UTF-8 does not."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text
