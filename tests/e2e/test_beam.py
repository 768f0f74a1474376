"""Beam searches of a real server: what they find is the same by every way and beside all others."""

import asyncio
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path

import pytest

from dragoman import AsyncClient, Client, InvalidRequestError, Translation
from tests.e2e.bundles import copy_pair
from tests.e2e.command import run
from tests.server_process import BUNDLE, PATIENCE_S

SENTENCES = [
    "Good morning.",
    "Where is the station?",
    "I have never been to Berlin.",
    "She reads a book every evening before she goes to sleep.",
    "Tom told me that he would come back tomorrow.",
]
TEXT = "Where is the station?\n\nI have never been to Berlin."
BEAM = {"model": "en-de", "beam_size": 4, "alternatives": 4}


def scores(translation: Translation) -> list[float]:
    return [alternative.score for alternative in translation.alternatives]


def test_alternatives_are_ordered_by_score_and_begin_with_the_translation(client) -> None:
    for translation in client.translate(SENTENCES, **BEAM, mean_log_probability=True):
        assert translation.beam_size == len(translation.alternatives) == 4
        first = translation.alternatives[0]
        assert (first.text, first.finish_reason) == (translation.text, translation.finish_reason)
        assert first.mean_log_probability == pytest.approx(translation.mean_log_probability)
        assert first.score == pytest.approx(first.mean_log_probability)  # with a penalty of 1, where nothing is forced
        assert all(better >= worse for better, worse in pairwise(scores(translation)))
        assert len({alternative.text for alternative in translation.alternatives}) > 1


def test_a_beam_is_as_wide_as_the_alternatives_need(client) -> None:
    translation = client.translate(SENTENCES[3], model="en-de", alternatives=4)
    assert translation == client.translate(SENTENCES[3], **BEAM)
    fewer = client.translate(SENTENCES[3], model="en-de", beam_size=4, alternatives=2)
    assert fewer.alternatives == translation.alternatives[:2]
    none = client.translate(SENTENCES[3], model="en-de", beam_size=4)
    assert (none.text, none.alternatives, none.beam_size) == (translation.text, (), 4)


def test_one_alternative_has_the_score_that_it_has_among_several(client) -> None:
    for penalty in (1.0, 0.0, 2.0):
        several = client.translate(SENTENCES, **BEAM, length_penalty=penalty)
        one = client.translate(SENTENCES, model="en-de", beam_size=4, alternatives=1, length_penalty=penalty)
        assert [scores(each)[0] for each in one] == pytest.approx([scores(each)[0] for each in several])


def test_a_larger_penalty_favours_longer_translations(client) -> None:
    def tokens(penalty: float) -> int:
        found = client.translate(SENTENCES, model="en-de", beam_size=8, length_penalty=penalty)
        return sum(translation.target_tokens for translation in found)

    assert tokens(-10.0) <= tokens(1.0) <= tokens(10.0)


def test_a_text_of_two_segments_has_the_best_combinations_of_theirs(client) -> None:
    first, second = (client.translate(sentence, **BEAM) for sentence in TEXT.split("\n\n"))
    together = client.translate(TEXT, **BEAM)
    combined = sorted(
        (
            (one.score + other.score, f"{one.text}\n\n{other.text}")
            for one, other in product(first.alternatives, second.alternatives)
        ),
        reverse=True,
    )
    assert scores(together) == pytest.approx([score for score, _ in combined[:4]])
    assert together.alternatives[0].text == together.text == f"{first.text}\n\n{second.text}"
    assert {alternative.text for alternative in together.alternatives} <= {text for _, text in combined}


def test_tags_are_in_every_alternative(client) -> None:
    translation = client.translate("<p>Where is <b>Tom</b>?</p>", **BEAM, mime_type="text/html")
    for alternative in translation.alternatives:
        assert alternative.text.startswith("<p>")
        assert alternative.text.endswith("</p>")
        assert alternative.text.count("<b>") == alternative.text.count("</b>") == 1


def test_every_method_gives_the_same(client) -> None:
    texts = [*SENTENCES, TEXT, " "]
    unary = client.translate(texts, **BEAM)
    deltas, results = defaultdict(str), {}
    for piece in client.stream(texts, **BEAM):
        deltas[piece.content_index] += piece.text
        if piece.result is not None:
            results[piece.content_index] = piece.result
    assert [results[index] for index in range(len(texts))] == unary
    assert [deltas[index] for index in range(len(texts))] == [translation.text for translation in unary]
    assert [translation for _, translation in client.translate_many(texts, **BEAM)] == unary


def test_nothing_of_a_stream_is_taken_back(uncached) -> None:
    text = " ".join(SENTENCES)
    with Client(uncached.address, timeout_s=PATIENCE_S) as client:
        for size in (2, 5, 16):
            pieces = list(client.stream(text, model="en-de", beam_size=size))
            assert "".join(piece.text for piece in pieces) == pieces[-1].result.text
            assert pieces[-1].result == client.translate(text, model="en-de", beam_size=size)


def test_what_a_beam_finds_does_not_depend_on_who_else_is_served(uncached) -> None:
    async def translate_all() -> list[Translation]:
        async with AsyncClient(uncached.address, timeout_s=PATIENCE_S, wait_when_busy=True) as client:
            calls = [
                client.translate(
                    SENTENCES[number % 5], model="en-de", beam_size=1 + number % 5, alternatives=number % 5
                )
                for number in range(100)
            ]
            return list(await asyncio.gather(*calls))

    together = asyncio.run(translate_all())
    with Client(uncached.address, timeout_s=PATIENCE_S) as client:
        for number in range(5):
            alone = client.translate(
                SENTENCES[number], model="en-de", beam_size=1 + number % 5, alternatives=number % 5
            )
            assert together[number::5] == [alone] * 20


def test_a_known_text_has_the_alternatives_that_it_had(client) -> None:
    text = "Tom has 9301 nuts. Where are the 9301 nuts?"
    first = client.translate(text, **BEAM)
    assert client.translate(text, **BEAM) == first
    assert client.translate(text, model="en-de", beam_size=1).beam_size == 1


def test_a_greedy_request_is_what_it_was_beside_beams(client) -> None:
    greedy = client.translate(SENTENCES, model="en-de")
    assert [translation.beam_size for translation in greedy] == [1] * 5
    client.translate(SENTENCES, **BEAM)
    assert client.translate(SENTENCES, model="en-de", beam_size=1) == greedy


def test_a_server_may_have_a_beam_for_requests_that_say_none(serve, client) -> None:
    server = serve("--beam-size=4", "--slots=6")
    with Client(server.address, timeout_s=PATIENCE_S) as own:
        assert own.translate(SENTENCES, model="en-de") == client.translate(SENTENCES, model="en-de", beam_size=4)
        assert own.translate(SENTENCES, model="en-de", beam_size=1) == client.translate(SENTENCES, model="en-de")
        with pytest.raises(InvalidRequestError, match="must be at most 6, the number of slots, is 7"):
            own.translate(SENTENCES, model="en-de", beam_size=7)


def test_both_models_of_a_pivot_have_the_beam(serve, tmp_path: Path) -> None:
    for source, target in (("fr", "en"), ("en", "de")):
        copy_pair(tmp_path, source, target)
    server = serve(f"--models={tmp_path}", "--threads=1", "--pivot-language=en")
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        halfway = client.translate(TEXT, model="fr-en", beam_size=4)
        expected = client.translate(halfway.text, model="en-de", beam_size=4, alternatives=3)
        found = client.translate(TEXT, source_language="fr", target_language="de", beam_size=4, alternatives=3)
        assert (found.text, found.alternatives) == (expected.text, expected.alternatives)


def test_the_command_writes_the_same_by_address_and_in_process(server, client) -> None:
    arguments = ["translate", "--beam-size=4", "--alternatives=3", "--length-penalty=0.5"]
    expected = "".join(
        f"{number}\t{alternative.score:.6f}\t{alternative.text}\n"
        for number, sentence in enumerate(SENTENCES, 1)
        for alternative in client.translate(
            sentence, model="en-de", beam_size=4, alternatives=3, length_penalty=0.5
        ).alternatives
    )
    for place in (["--address", server.address], ["--models", str(BUNDLE)]):
        done = run(*arguments, *place, stdin="\n".join(SENTENCES).encode())
        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, expected, b"")


@pytest.mark.parametrize("options", [{}, {"beam_size": 4, "alternatives": 3}], ids=["greedy", "a beam"])
def test_a_prefix_is_what_translations_begin_with(client, options: dict) -> None:
    free = client.translate(SENTENCES[3], model="en-de", **options)
    begun = client.translate(SENTENCES[3], model="en-de", target_prefix="Jeden Abend", **options)
    assert not free.text.startswith("Jeden Abend")
    for text in (begun.text, *(each.text for each in begun.alternatives)):
        assert text.startswith("Jeden Abend ")
        assert len(text) > len("Jeden Abend ")
    pieces = client.stream(SENTENCES[3], model="en-de", target_prefix="Jeden Abend", **options)
    assert "".join(piece.text for piece in pieces) == begun.text


def test_a_prefix_that_greedy_decoding_would_have_written_changes_nothing(client) -> None:
    free = client.translate(SENTENCES[3], model="en-de")
    prefix = " ".join(free.text.split()[:2])
    assert client.translate(SENTENCES[3], model="en-de", target_prefix=prefix).text == free.text


def test_a_prefix_that_cannot_be_is_named(client) -> None:
    for prefix, said in (
        ("x " * 3_000, "4096 bytes"),
        ("Guten  Tag", "the pieces of the model"),
        ("ja " * 300, "fewer tokens"),
    ):
        with pytest.raises(InvalidRequestError, match=r"options\.target_prefix") as caught:
            client.translate("Good morning.", model="en-de", target_prefix=prefix)
        assert said in str(caught.value)


def test_the_command_takes_a_prefix_by_address_and_in_process(server) -> None:
    arguments = ["translate", "--target-prefix", "Jeden Abend", SENTENCES[3]]
    outputs = [run(*arguments, *place).stdout for place in (["--address", server.address], ["--models", str(BUNDLE)])]
    assert outputs[0] == outputs[1]
    assert outputs[0].startswith(b"Jeden Abend ")
