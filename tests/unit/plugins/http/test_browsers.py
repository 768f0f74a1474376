"""What a server without keys refuses of browsers."""

from collections.abc import Callable

import pytest
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from plugins.http import application, errors
from plugins.http.browsers import BrowserGuard
from plugins.http.forwarded import TrustedProxies
from tests.unit.plugins.http.asgi import call

HERE = {"host": "127.0.0.1:8080"}
FOREIGN = HERE | {"sec_fetch_site": "cross-site", "origin": "https://evil.example"}


async def _answer(_: object) -> Response:
    return errors.json_response({})


def app_of(*origins: str, proxies: tuple[str, ...] = (), only_loopback: bool = True) -> ASGIApp:
    guard = Middleware(BrowserGuard, origins, TrustedProxies(proxies), only_loopback=only_loopback)
    routes = [Route("/", _answer, methods=["GET", "POST"]), Route("/health", _answer)]
    return application.make(routes, origins, [guard])


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", HERE, 200),
        ("POST", FOREIGN, 403),
        ("POST", FOREIGN | {"sec_fetch_mode": "navigate"}, 403),  # a form
        ("GET", FOREIGN, 403),
        ("GET", FOREIGN | {"sec_fetch_mode": "navigate"}, 200),  # a link
        ("POST", FOREIGN | {"sec_fetch_site": "same-origin"}, 200),
        ("POST", FOREIGN | {"sec_fetch_site": "none"}, 200),
    ],
)
async def test_pages_of_other_sites_may_not_call(method: str, headers: dict[str, str], status: int) -> None:
    answer = await call(app_of(), method, "/", {}, **headers)
    assert answer.status == status
    if status == 403:
        assert answer.json["error"]["status"] == "PERMISSION_DENIED"
        assert "--http-origins" in answer.json["error"]["message"]
        assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/translate", lambda said: {"error": said}),
        ("/frontend/settings", lambda said: {"error": said}),
        ("/download_file/x.txt", lambda said: {"error": said}),
        ("/v2/translate", lambda said: {"message": said}),
        ("/dragoman.v1.Translation/TranslateText", lambda said: {"code": "permission_denied", "message": said}),
        ("/v1/translate", lambda said: {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": said}}),
    ],
)
async def test_a_refusal_is_an_error_of_the_protocol(path: str, content: Callable[[str], object]) -> None:
    said = "host: must be localhost or an address of loopback, on which this server listens, is 'evil.example'"
    answer = await call(app_of(), "POST", path, {}, host="evil.example")
    assert (answer.status, answer.json) == (403, content(said))


@pytest.mark.parametrize("origin", ["*", "https://evil.example"])
async def test_pages_of_origins_that_are_named_may(origin: str) -> None:
    answer = await call(app_of("https://other.example", origin), "POST", "/", {}, **FOREIGN)
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"]
    assert (await call(app_of("https://other.example"), "POST", "/", {}, **FOREIGN)).status == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LocalHost.:8080", 200),
        ("a.localhost:8080", 200),
        ("127.0.0.1", 200),
        ("127.9.9.9:80", 200),
        ("[::1]:8080", 200),
        ("[::1]", 200),
        ("evil.example:8080", 403),
        ("localhost.evil.example", 403),
        ("evillocalhost", 403),
        ("192.0.2.1:8080", 403),
        ("[2001:db8::1]:8080", 403),
        ("[::1]evil.example", 403),
        ("localhost:evil", 403),
        ("", 403),
    ],
)
async def test_on_loopback_a_host_is_one_of_loopback(host: str, status: int) -> None:
    answer = await call(app_of(), "POST", "/", {}, host=host)
    assert answer.status == status
    if status == 403:
        assert answer.json["error"]["message"].endswith(f"is {host!r}")


async def test_a_balancer_asks_for_health_by_a_name_of_its_own() -> None:
    assert (await call(app_of(), "GET", "/health", host="replicas")).status == 200


async def test_any_host_is_taken_elsewhere_and_of_proxies_and_none_of_old_clients() -> None:
    for app in (app_of(only_loopback=False), app_of(proxies=("127.0.0.0/8",))):
        assert (await call(app, "POST", "/", {}, host="translate.example.com")).status == 200
    assert (await call(app_of(), "POST", "/", {})).status == 200
