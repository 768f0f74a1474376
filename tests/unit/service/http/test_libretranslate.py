"""LibreTranslate's API before handlers whose engine the tests play."""

import asyncio

import pytest
from starlette.types import ASGIApp

from service.http import application
from service.http.calls import Calls
from service.http.libretranslate import LibreTranslate
from service.http.parameter_calls import ParameterCalls
from service.security.forwarded import TrustedProxies
from service.wire import Protocol
from tests.unit.service.http.asgi import call
from tests.unit.service.played_engine import PlayedEngine

ASKED = {"q": "tom", "source": "en", "target": "de"}


def app_of(played: PlayedEngine) -> ASGIApp:
    calls = ParameterCalls(Calls(played.handlers, 1_000_000, TrustedProxies([])), Protocol.LIBRETRANSLATE, "api_key")
    api = LibreTranslate(played.handlers, calls, played.gate.catalog, asks_for_keys=False)
    return application.make(api.routes(), [])


@pytest.mark.parametrize(("method", "path"), [("POST", "/translate"), ("GET", "/languages"), ("POST", "/detect")])
async def test_a_server_that_loads_says_when_to_try_again(closed_played, method: str, path: str) -> None:
    answer = await call(app_of(closed_played), method, path, ASKED)
    assert (answer.status, answer.json) == (503, {"error": "the models are being loaded"})
    assert answer.headers["retry-after"] == "1"


async def test_a_translation(played) -> None:
    answer = asyncio.create_task(call(app_of(played), "POST", "/translate", ASKED))
    [segment] = await played.taken(1)
    played.exhaust(segment)
    assert (await answer).json == {"translatedText": "tom"}
    assert played.records[-1].protocol == "libretranslate"


async def test_parameters_of_the_body_win_over_those_of_the_url(played) -> None:
    answer = asyncio.create_task(
        call(app_of(played), "POST", "/translate?q=good&target=de&source=xx", {"q": "tom", "source": "en"})
    )
    [segment] = await played.taken(1)
    played.exhaust(segment)
    assert (await answer).json == {"translatedText": "tom"}


async def test_too_many_parameters_are_refused(played) -> None:
    answer = await call(app_of(played), "POST", "/translate?" + "a=1&" * 3_000, ASKED)
    assert answer.json == {"error": "there may be at most 2000 parameters"}


@pytest.mark.parametrize(
    "content",
    [{"q": "a\ud800", "source": "en", "target": "de"}, {"q": ["a", "\udfff"], "source": "en", "target": "de"}],
)
async def test_half_a_character_is_refused(played, content: dict[str, object]) -> None:
    answer = await call(app_of(played), "POST", "/translate", content)
    name = "q" if isinstance(content["q"], str) else "q[1]"
    assert (answer.status, answer.json) == (400, {"error": f"{name}: half a surrogate pair is no character"})
