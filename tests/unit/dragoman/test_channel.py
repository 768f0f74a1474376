"""Which server is meant, and how gRPC is told to try again."""

import json

import pytest

from dragoman.access import API_KEY_VARIABLE
from dragoman.channel import ADDRESS_VARIABLE, DEFAULT_ADDRESS, MOST_RETRIES, address_of, api_key_of, channel_options


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ADDRESS_VARIABLE, API_KEY_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_the_given_address_wins_over_the_variable_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert address_of(None) == address_of("") == DEFAULT_ADDRESS
    monkeypatch.setenv(ADDRESS_VARIABLE, "there:1")
    assert (address_of(None), address_of("here:2")) == ("there:1", "here:2")


def test_the_given_key_wins_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert api_key_of(None) is None
    monkeypatch.setenv(API_KEY_VARIABLE, "of the environment")
    assert (api_key_of(None), api_key_of("given"), api_key_of("")) == ("of the environment", "given", None)


@pytest.mark.parametrize("key", ["a\nb", "é", "\x7f"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as refused:
        api_key_of(key)
    assert key not in str(refused.value)


def service_config(retries: int) -> dict:
    return json.loads(dict(channel_options(retries))["grpc.service_config"])


@pytest.mark.parametrize("retries", range(1, MOST_RETRIES + 1))
def test_calls_with_one_answer_are_tried_again_as_often_as_told(retries: int) -> None:
    [method] = service_config(retries)["methodConfig"]
    assert method["retryPolicy"]["maxAttempts"] == retries + 1
    assert [name["method"] for name in method["name"]] == [
        "TranslateText",
        "ScoreText",
        "DetectLanguage",
        "ListModels",
        "ListGlossaries",
    ]
    assert "RESOURCE_EXHAUSTED" not in method["retryPolicy"]["retryableStatusCodes"]


def test_without_retries_nothing_is_tried_again() -> None:
    assert "methodConfig" not in service_config(0)


@pytest.mark.parametrize("retries", [-1, MOST_RETRIES + 1, 1.5, None])
def test_impossible_retries_are_named(retries: object) -> None:
    with pytest.raises(ValueError, match=f"retries must be 0 to {MOST_RETRIES}, is"):
        channel_options(retries)


def test_calls_are_spread_and_answers_may_be_of_any_size() -> None:
    assert service_config(1)["loadBalancingConfig"] == [{"round_robin": {}}]
    assert dict(channel_options(1))["grpc.max_receive_message_length"] == -1
