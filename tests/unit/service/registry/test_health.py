"""What serves, as the loop asks and follows it; how gRPC tells it is in rpc/test_health.py."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.registry.health import BUNDLES, Health, name_of
from service.wire import SERVICE

PATIENCE_S = 60.0
SERVER = ("", SERVICE)
MODELS = ("en-de", "de-en", "fr-de")
SOME = st.sets(st.sampled_from(MODELS))


def test_nothing_serves_at_first() -> None:
    health = Health()
    assert health.all() == dict.fromkeys((*SERVER, BUNDLES), False)
    assert not health.serving
    assert health.is_serving(name_of("en-de")) is None


@given(st.lists(st.tuples(SOME, SOME), max_size=5), st.booleans())
def test_a_model_serves_while_it_is_served_and_does_not_stall(turns: list[tuple[set[str], set[str]]], left) -> None:
    health, ever, served, stalled = Health(), set(), set(), set()
    for served, stalled in turns:
        health.serve(served)
        health.stall(stalled)
        ever |= served
    if left:
        health.leave()
    up = bool(served) and not left
    assert {name: health.is_serving(name) for name in SERVER} == dict.fromkeys(SERVER, up and not stalled)
    for model in MODELS:
        expected = up and model in served - stalled if model in ever else None
        assert health.is_serving(name_of(model)) is expected


def test_a_model_that_was_missed_does_not_serve_and_one_that_is_served_stays() -> None:
    health = Health()
    health.serve(["en-de"])
    health.miss("en-de")
    health.miss("de-en")
    assert (health.is_serving(name_of("en-de")), health.is_serving(name_of("de-en"))) == (True, False)


def test_bundles_agree_only_while_the_server_serves() -> None:
    health = Health()
    health.agree(agree=True)
    assert health.is_serving(BUNDLES) is False
    health.serve(["en-de"])
    assert health.is_serving(BUNDLES) is True
    health.agree(agree=False)
    assert (health.is_serving(BUNDLES), health.serving) == (False, True)


def test_what_is_given_is_a_copy() -> None:
    health = Health()
    health.all()[""] = True
    assert not health.serving


async def told(health: Health, name: str) -> AsyncIterator[bool | None]:
    async with asyncio.timeout(PATIENCE_S):
        async for serving in health.follow(name):
            yield serving


async def test_a_follower_is_told_at_once_and_of_changes_until_the_end() -> None:
    health = Health()
    following = told(health, name_of("en-de"))
    assert await anext(following) is None
    health.serve(["en-de"])
    assert await anext(following) is True
    health.serve(["en-de", "de-en"])  # nothing new for this name
    health.stall(["en-de"])
    assert await anext(following) is False
    health.end()
    with pytest.raises(StopAsyncIteration):
        await anext(following)


async def test_one_who_takes_news_slowly_hears_how_it_ended() -> None:
    health = Health()
    health.serve(["en-de"])
    news = health.follow("")
    assert await anext(news) is True
    health.leave()
    health.end()
    assert [serving async for serving in news] == [False]


async def test_one_who_comes_after_the_end_hears_that() -> None:
    health = Health()
    health.leave()
    health.end()
    assert [serving async for serving in health.follow("")] == [False]
