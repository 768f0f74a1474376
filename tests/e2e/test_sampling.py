"""Draws of a real server: a seed gives the same translation by every way and beside all others."""

import asyncio
import json

import pytest

from dragoman import AsyncClient, Client, InvalidRequestError, Translation
from tests.e2e.command import run
from tests.server_process import BUNDLE, PATIENCE_S

SENTENCES = [
    "Good morning.",
    "Where is the station?",
    "I have never been to Berlin.",
    "She reads a book every evening before she goes to sleep.",
    "Tom told me that he would come back tomorrow.",
]
TEXT = "\n\n".join(SENTENCES)
DRAWS = {"model": "en-de", "temperature": 1.5, "top_p": 0.95}


def test_a_seed_gives_the_same_text_and_another_seed_another(client) -> None:
    drawn = [client.translate(TEXT, **DRAWS, seed=seed) for seed in range(4)]
    assert [translation.seed for translation in drawn] == list(range(4))
    assert {translation.beam_size for translation in drawn} == {1}
    assert len({translation.text for translation in drawn}) == 4
    assert [client.translate(TEXT, **DRAWS, seed=seed) for seed in range(4)] == drawn


def test_a_seed_that_the_server_drew_gives_the_text_again(client) -> None:
    drawn = [client.translate(TEXT, **DRAWS) for _ in range(3)]
    assert len({translation.seed for translation in drawn}) == 3
    for translation in drawn:
        assert translation.seed is not None
        assert client.translate(TEXT, **DRAWS, seed=translation.seed) == translation
    assert client.translate(TEXT, model="en-de").seed is None


def test_every_method_draws_the_same_wherever_a_text_stands(client) -> None:
    texts = [*SENTENCES, TEXT, " ", SENTENCES[0]]
    unary = client.translate(texts, **DRAWS, seed=5)
    assert unary[0] == unary[-1]
    assert client.translate(texts[::-1], **DRAWS, seed=5) == unary[::-1]
    assert [client.translate(text, **DRAWS, seed=5) for text in texts] == unary
    pieces = list(client.stream(TEXT, **DRAWS, seed=5))
    assert pieces[-1].result == unary[5]
    assert "".join(piece.text for piece in pieces) == unary[5].text
    assert [translation for _, translation in client.translate_many(texts, **DRAWS, seed=5)] == unary


def test_what_is_drawn_does_not_depend_on_who_else_is_served(server, client) -> None:
    async def translate_all() -> list[Translation]:
        async with AsyncClient(server.address, timeout_s=PATIENCE_S, wait_when_busy=True) as many:
            calls = [
                many.translate(
                    SENTENCES[number % 5],
                    model="en-de",
                    **({"beam_size": 4} if number % 3 == 0 else {"temperature": 2.0, "seed": number}),
                )
                for number in range(60)
            ]
            return list(await asyncio.gather(*calls))

    for number, translation in enumerate(asyncio.run(translate_all())):
        if number % 3:
            assert client.translate(SENTENCES[number % 5], model="en-de", temperature=2.0, seed=number) == translation


def test_one_token_to_draw_from_is_greedy_and_so_is_its_log_probability(client) -> None:
    greedy = client.translate(SENTENCES, model="en-de", mean_log_probability=True, alternatives=1)
    drawn = client.translate(
        SENTENCES, model="en-de", mean_log_probability=True, alternatives=1, top_k=1, temperature=5
    )
    for one, other in zip(greedy, drawn, strict=True):
        assert (one.text, one.mean_log_probability, one.alternatives) == (
            other.text,
            other.mean_log_probability,
            other.alternatives,
        )


def test_tokens_that_are_drawn_are_less_probable_than_the_best(client) -> None:
    greedy = client.translate(SENTENCES, model="en-de", mean_log_probability=True)
    drawn = client.translate(SENTENCES, model="en-de", mean_log_probability=True, temperature=3.0, seed=1)
    for one, other in zip(greedy, drawn, strict=True):
        assert other.mean_log_probability < one.mean_log_probability <= 0


def test_a_prefix_a_limit_and_tags_are_as_with_greedy_decoding(client) -> None:
    begun = client.translate(SENTENCES[3], **DRAWS, seed=2, target_prefix="Jeden Abend")
    assert begun.text.startswith("Jeden Abend")
    short = client.translate(SENTENCES[3], **DRAWS, seed=2, max_target_tokens=3)
    assert (short.target_tokens, short.finish_reason) == (3, "LENGTH")
    html = client.translate("<p>Where is <b>Tom</b>?</p>", **DRAWS, seed=2, mime_type="text/html").text
    assert html.startswith("<p>")
    assert html.endswith("</p>")
    assert html.count("<b>") == html.count("</b>") == 1


def test_draws_have_a_beam_of_one_and_beams_are_refused(serve) -> None:
    server = serve("--beam-size=4", "--slots=6")
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert client.translate(SENTENCES[0], model="en-de", seed=1).beam_size == 1
        with pytest.raises(InvalidRequestError) as refused:
            client.translate(SENTENCES[0], model="en-de", seed=1, beam_size=4, alternatives=3, temperature=11.0)
    assert [violation.field for violation in refused.value.violations] == [
        "options.beam_size",
        "options.alternatives",
        "options.sampling.temperature",
    ]


def test_the_command_draws_the_same_by_address_and_in_process(server) -> None:
    arguments = ["translate", "--json", "--temperature=1.5", "--top-k=20", "--top-p=0.9", "--seed=3", TEXT]
    places = (["--address", server.address], ["--models", str(BUNDLE)])
    by_address, in_process = (json.loads(run(*arguments, *place).stdout) for place in places)
    assert by_address == in_process
    assert by_address["seed"] == 3
