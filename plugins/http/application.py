"""The ASGI application: routes of all protocols, CORS for pages of other sites, and errors outside of calls."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from plugins.http import errors
from plugins.http.body import ClientLeftError
from plugins.http.request_ids import HEADER, RequestIds

_CLIENT_LEFT = 499  # from nginx, and google.rpc.Code's status for CANCELLED; no client reads it


def make(routes: Sequence[BaseRoute], origins: Sequence[str], guards: Sequence[Middleware] = ()) -> ASGIApp:
    """Make the application.

    Web pages of other origins may call only if they are named. Answers do not depend on cookies, so with "*" a page
    learns nothing that its own server could not request; but a browser reaches its own machine and network, too.

    Args:
        origins: the origins of web pages that may call; "*": all.
        guards: middleware that refuses requests before they reach a route.
    """
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["retry-after", HEADER],
        max_age=600,
    )
    app = Starlette(
        routes=routes,
        middleware=[*guards, cors] if origins else guards,
        exception_handlers={HTTPException: _no_route, ClientLeftError: _left, Exception: _failed},
    )
    app.router.redirect_slashes = False  # a redirect would repeat the host name sent by the client
    return RequestIds(app)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = {
        404: f"there is no {request.url.path[:200]}",
        405: f"{request.url.path[:200]} cannot be called with {request.method}",
    }.get(error.status_code, error.detail)
    return errors.plain_answer(error.status_code, message, dict(error.headers or {}))


async def _left(request: Request, error: Exception) -> Response:
    return Response(status_code=_CLIENT_LEFT)


async def _failed(request: Request, error: Exception) -> Response:
    return errors.plain_answer(500, "the server failed by its own fault")
