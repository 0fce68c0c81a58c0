"""Errors as clients see them: one sentence in `detail`, and nothing of what came, which might not even be text."""
from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

FAULT = "the server failed at this; its log says why."


def answer_errors(app: FastAPI) -> None:
    """Let the application answer errors this way."""
    app.exception_handler(RequestValidationError)(_not_understood)
    app.exception_handler(HTTPException)(_refused)


def fault(problem: Exception) -> JSONResponse:
    """The reply to a fault of ours: the log has the traceback, the client a sentence."""
    logging.getLogger(__name__).error("a request failed", exc_info=problem)
    return JSONResponse({"detail": FAULT}, 500)


async def _not_understood(_: Request, problem: RequestValidationError) -> JSONResponse:
    errors = [{"loc": [_plain(part) for part in error["loc"]], "msg": _plain(error["msg"]), "type": error["type"]}
              for error in problem.errors()]
    return JSONResponse({"detail": errors}, 422)


async def _refused(_: Request, problem: HTTPException) -> JSONResponse:
    return JSONResponse({"detail": _plain(problem.detail)}, problem.status_code, problem.headers)


def _plain(text: object) -> object:
    """Text without the half characters that JSON allows and UTF-8 does not."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text
