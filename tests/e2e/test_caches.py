"""What a server has translated or is translating is not translated again; each way can be switched off."""

import asyncio
from collections.abc import Callable

import pytest

from dragoman import AsyncClient, Client, DeadlineExceededError

PATIENCE_S = 120.0
OFF = ("--encoder-cache-mb=0", "--result-cache-mb=0", "--no-coalesce")


def long_text(subject: str) -> str:
    """Sixty sentences that no other test has, if the subject is of one test alone."""
    return " ".join(f"{subject} bought {number} books, and then he read them all." for number in range(60))


class Growth:
    """How much metrics of a server have grown since this was made."""

    def __init__(self, server) -> None:
        self._server = server
        self._before = server.scrape()

    def __call__(self, name: str) -> float:
        return self._server.metric(name) - self._before.total(name)


async def gather(address: str, calls: int, work: Callable) -> list[object]:
    """The outcomes of so many concurrent calls."""
    async with AsyncClient(address, timeout_s=PATIENCE_S) as client:
        return await asyncio.gather(*(work(client, number) for number in range(calls)))


def test_a_text_that_comes_again_is_known(client, server) -> None:
    text = "Tom has 9101 apples. Tom has 9101 apples. Where are they, the 9101?"
    growth = Growth(server)
    first = client.translate(text, model="en-de")
    assert growth("result_cache_misses_total") == growth("encoder_memory_cache_misses_total") == 2
    assert growth("coalesced_segments_total") == 1
    # Not their growth: a full cache forgets what other tests have asked.
    assert server.metric("result_cache_bytes") > 0
    assert server.metric("encoder_memory_cache_bytes") > 0
    tokens = growth("target_tokens_total")
    assert client.translate(text, model="en-de") == first
    assert growth("result_cache_hits_total") == 3
    assert growth("result_cache_misses_total") == 2
    assert growth("result_cache_saved_seconds_total") > 0
    assert growth("target_tokens_total") == tokens
    assert growth("time_to_first_token_seconds_count") == 6


def test_a_known_text_streams_as_it_is_answered(client) -> None:
    text = "Tom has 9102 pears. He likes them, all 9102."
    unary = client.translate(text, model="en-de")
    pieces = list(client.stream(text, model="en-de"))
    assert "".join(piece.text for piece in pieces) == unary.text
    assert pieces[-1].result == unary


def test_another_limit_is_another_question_to_the_results_but_not_to_the_encoder(client, server) -> None:
    text = "Tom has 9103 apples and a book about the 9103 apples."
    growth = Growth(server)
    whole = client.translate(text, model="en-de")
    cut = client.translate(text, model="en-de", max_target_tokens=2)
    assert (whole.finish_reason, cut.finish_reason, cut.target_tokens) == ("EOS", "LENGTH", 2)
    assert whole.text.startswith(cut.text)
    assert growth("result_cache_misses_total") == 2
    assert growth("encoder_memory_cache_hits_total") == growth("encoder_memory_cache_misses_total") == 1
    assert growth("encoder_memory_cache_saved_seconds_total") > 0


def test_a_known_text_is_decoded_again_for_who_asks_how_sure_the_model_was_and_then_known(client, server) -> None:
    text = "Tom has 9106 plums."
    growth = Growth(server)
    plain = client.translate(text, model="en-de")
    fresh, known = (client.translate(text, model="en-de", mean_log_probability=True) for _ in range(2))
    assert fresh == known
    assert fresh.mean_log_probability < 0
    assert fresh.text == plain.text
    assert client.translate(text, model="en-de") == plain
    assert growth("result_cache_misses_total") == growth("result_cache_hits_total") == 2


def test_fifty_callers_of_one_text_are_served_by_one_decoding(server) -> None:
    growth = Growth(server)
    text = long_text("Mary")

    async def translate(client: AsyncClient, _: int) -> object:
        return await client.translate(text, model="en-de")

    outcomes = asyncio.run(gather(server.address, 50, translate))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    translation = outcomes[0]
    assert translation.segments == 60
    # Each sentence once, and its end-of-sentence token.
    assert growth("source_tokens_total") == translation.source_tokens + 60
    assert growth("target_tokens_total") == translation.target_tokens
    assert growth("result_cache_misses_total") == 60
    assert growth("result_cache_hits_total") + growth("coalesced_segments_total") == 49 * 60
    assert growth("coalesced_segments_total") > 0
    assert growth("coalesced_saved_seconds_total") > 0


@pytest.mark.parametrize("leaver", [0, 3])
def test_one_caller_who_leaves_does_not_hurt_the_others(server, leaver: int) -> None:
    growth = Growth(server)
    text = long_text(f"Number {leaver}")

    async def translate(client: AsyncClient, number: int) -> object:
        if number != leaver:
            return await client.translate(text, model="en-de")
        async for _ in client.stream(text, model="en-de"):
            break  # and hangs up
        return None

    outcomes = asyncio.run(gather(server.address, 8, translate))
    rest = [outcome for outcome in outcomes if outcome is not None]
    assert len(rest) == 7
    assert all(outcome == rest[0] for outcome in rest)
    assert growth("coalesced_segments_total") > 0
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert client.translate(text, model="en-de") == rest[0]


def test_the_deadline_of_one_caller_is_its_own(server) -> None:
    text = " ".join(long_text(f"Deadline {number}") for number in range(25))

    async def translate(client: AsyncClient, number: int) -> object:
        try:
            return await client.translate(text, model="en-de", timeout_s=0.3 if number == 0 else PATIENCE_S)
        except DeadlineExceededError as error:
            return error

    hasty, *patient = asyncio.run(gather(server.address, 3, translate))
    assert isinstance(hasty, DeadlineExceededError)
    assert patient[0] == patient[1]
    assert patient[0].segments == 25 * 60


def test_switched_off_everything_is_done_again(uncached, client) -> None:
    text = "Tom has 9104 apples. Tom has 9104 apples. Where are they, the 9104?"
    growth = Growth(uncached)
    with Client(uncached.address, timeout_s=PATIENCE_S) as plain:
        answers = [plain.translate(text, model="en-de") for _ in range(2)]
    assert answers == [client.translate(text, model="en-de")] * 2
    translation = answers[0]
    assert growth("target_tokens_total") == 2 * translation.target_tokens
    assert growth("source_tokens_total") == 2 * (translation.source_tokens + 3)
    page = uncached.scrape()
    counted = {name for (name, _), count in page.items() if count and ("_cache_" in name or "coalesced" in name)}
    assert counted == {"dragoman_kv_cache_bytes"}


@pytest.mark.parametrize("name", ["encoder_memory_cache_hits", "result_cache_hits", "coalesced_segments"])
def test_each_can_be_on_alone(serve, name: str) -> None:
    flags = dict(zip(("encoder_memory_cache_hits", "result_cache_hits", "coalesced_segments"), OFF, strict=True))
    server = serve(*(flag for other, flag in flags.items() if other != name))
    text = "Tom has 9105 apples. Tom has 9105 apples."
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert client.translate(text, model="en-de") == client.translate(text, model="en-de")
    assert {other for other in flags if server.metric(f"{other}_total")} == {name}


def test_a_budget_for_keys_and_values_is_kept(serve) -> None:
    server = serve("--kv-cache-mb=20", "--threads=2", "--slots=1000")
    assert 2 <= server.metric("slots") < 2000
    assert 0 < server.metric("kv_cache_bytes") <= 20_000_000
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert client.translate(long_text("Tom"), model="en-de").segments == 60


def test_a_budget_that_does_not_pay_for_a_slot_ends_with_2_and_one_line(launch) -> None:
    server = launch("--kv-cache-mb=1", "--threads=8")
    assert server.exit_code() == 2
    assert "(--kv-cache-mb) allows 1" in server.log[-1]
