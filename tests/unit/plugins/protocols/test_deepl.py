"""DeepL's API before handlers whose engine the tests play."""

import asyncio

import pytest
from starlette.types import ASGIApp

from plugins.http import application
from plugins.http.calls import Calls
from plugins.http.forwarded import TrustedProxies
from plugins.protocols.deepl import DeepL
from plugins.protocols.parameter_calls import ParameterCalls
from service.wire import CallProtocol
from tests.unit.plugins.http.asgi import call
from tests.unit.service.played_engine import PlayedEngine

ASKED = {"text": ["tom"], "source_lang": "EN", "target_lang": "DE"}


def app_of(played: PlayedEngine, max_request_bytes: int = 1_000_000) -> ASGIApp:
    calls = ParameterCalls(
        Calls(played.handlers, max_request_bytes, TrustedProxies([])), CallProtocol.DEEPL, "auth_key"
    )
    return application.make(DeepL(played.handlers, calls).routes(), [])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v2/translate"),
        ("GET", "/v2/languages"),
        ("GET", "/v2/usage"),
        ("GET", "/v2/glossary-language-pairs"),
        ("GET", "/v2/glossaries"),
        ("GET", "/v2/glossaries/a"),
    ],
)
async def test_a_server_that_loads_says_when_to_try_again(closed_played, method: str, path: str) -> None:
    answer = await call(app_of(closed_played), method, path, ASKED)
    assert (answer.status, answer.json) == (503, {"message": "the models are being loaded"})
    assert answer.headers["retry-after"] == "1"


async def test_a_translation(played) -> None:
    answer = asyncio.create_task(
        call(app_of(played), "POST", "/v2/translate", ASKED | {"show_billed_characters": True})
    )
    [segment] = await played.taken(1)
    played.exhaust(segment)
    translation = {"detected_source_language": "EN", "text": "tom", "billed_characters": 3}
    assert (await answer).json == {"translations": [translation]}
    assert played.records[-1].protocol == "deepl"


async def test_a_call_that_is_complete_is_answered_though_the_server_shuts_down(played) -> None:
    asked = {"text": ["good"], "target_lang": "DE"}
    answer = asyncio.create_task(call(app_of(played), "POST", "/v2/translate", asked))
    [segment] = await played.taken(1)
    played.gate.close()
    played.exhaust(segment)
    assert (await answer).json["translations"] == [{"detected_source_language": "EN", "text": "good"}]


async def test_a_quality_estimate_is_shown_where_it_is_asked_for(played) -> None:
    answer = asyncio.create_task(
        call(app_of(played), "POST", "/v2/translate", ASKED | {"show_quality_estimate": True, "text": ["tom", "?"]})
    )
    [segment] = await played.taken(1)
    played.exhaust(segment)
    assert [each["quality_estimate"] for each in (await answer).json["translations"]] == [0.8176, None]


async def test_a_body_that_is_too_large_has_its_own_status(played) -> None:
    answer = await call(app_of(played, 10), "POST", "/v2/translate", ASKED)
    assert (answer.status, list(answer.json)) == (413, ["message"])


async def test_a_call_out_of_time(played) -> None:
    answer = await call(app_of(played), "POST", "/v2/translate", ASKED, connect_timeout_ms="0")
    assert (answer.status, list(answer.json)) == (504, ["message"])
