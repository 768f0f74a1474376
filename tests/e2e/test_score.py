"""Scores of a real server: those of its own translations are what it said of them, and bad pairs hurt no others."""

import asyncio

import pytest

from dragoman import AsyncClient, InvalidRequestError, Score, UnknownModelError
from tests.e2e.command import run
from tests.server_process import BUNDLE, PATIENCE_S

SENTENCES = [
    "Good morning.",
    "Where is the station?",
    "I have never been to Berlin.",
    "She reads a book every evening before she goes to sleep.",
    "Tom told me that he would come back tomorrow.",
]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_translation_has_the_score_that_it_was_made_with(client, beam_size: int) -> None:
    made = client.translate(SENTENCES, model="en-de", beam_size=beam_size, mean_log_probability=True)
    scores = client.score(SENTENCES, [translation.text for translation in made], model="en-de")
    for translation, score in zip(made, scores, strict=True):
        assert score.mean_log_probability == translation.mean_log_probability
        assert (score.source_tokens, score.target_tokens) == (translation.source_tokens, translation.target_tokens)
        assert len(score.tokens) == score.target_tokens + 1
        assert "".join(token.piece for token in score.tokens[:-1]).replace("▁", " ").strip() == translation.text
        assert score.log_probability == pytest.approx(sum(token.log_probability for token in score.tokens))
        assert score.model == "en-de"


def test_a_wrong_translation_is_less_probable_and_its_wrong_word_too(client) -> None:
    good, bad = client.score([SENTENCES[1]] * 2, ["Wo ist der Bahnhof?", "Wo ist der Apfel?"], model="en-de")
    assert good.mean_log_probability > bad.mean_log_probability + 1
    first = next(place for place, (one, other) in enumerate(zip(good.tokens, bad.tokens, strict=False)) if one != other)
    assert good.tokens[first].log_probability > bad.tokens[first].log_probability + 3
    assert good.tokens[:first] == bad.tokens[:first]


def test_what_is_scored_does_not_depend_on_who_else_is_served(server, client) -> None:
    translations = [
        "Guten Morgen.",
        "Wo ist der Bahnhof?",
        "Ich war nie in Berlin.",
        "Sie liest ein Buch.",
        "Tom kommt.",
    ]

    async def score_all() -> list[Score]:
        async with AsyncClient(server.address, timeout_s=PATIENCE_S, wait_when_busy=True) as many:
            calls = []
            for number in range(100):
                place = number % 5
                if number % 4 == 0:
                    calls.append(many.translate(f"{SENTENCES[place]} {number}", model="en-de", beam_size=1 + place))
                else:
                    calls.append(many.score(f"{SENTENCES[place]} {number}", translations[place], model="en-de"))
            return list(await asyncio.gather(*calls))

    for number, score in enumerate(asyncio.run(score_all())):
        if isinstance(score, Score) and number % 3 == 0:
            # With a translation that nobody has asked for, so that nothing is known of it.
            alone = client.score(f"{SENTENCES[number % 5]} {number}", f"{translations[number % 5]} Ja.", model="en-de")
            assert alone.tokens[:3] == score.tokens[:3]


def test_pairs_that_cannot_be_scored_have_errors_in_their_places(client) -> None:
    texts, translations = ["a", SENTENCES[0], "word " * 2_000, ""], ["ja " * 300, "Guten Morgen.", "ja", "ja"]
    long, good, longer, empty = client.score(texts, translations, model="en-de", all_or_nothing=False)
    assert good.error is None
    for score, said in (
        (long, "pairs[0].target_text: must be at most "),
        (longer, "pairs[2].source_text"),
        (empty, "pairs[3]"),
    ):
        assert isinstance(score.error, InvalidRequestError)
        assert said in str(score.error)
        assert (score.tokens, score.model) == ((), "en-de")
    with pytest.raises(InvalidRequestError, match=r"pairs\[0\].target_text"):
        client.score(texts, translations, model="en-de")
    with pytest.raises(UnknownModelError):
        client.score("a", "b", model="x")


def test_a_call_is_in_the_metrics(server, client) -> None:
    before = server.metric("requests_total", method="ScoreText", code="OK")
    client.score(SENTENCES, SENTENCES, model="en-de")
    assert server.metric("requests_total", method="ScoreText", code="OK") == before + 1


def test_the_command_scores_the_same_by_address_and_in_process(server, client) -> None:
    pairs = "\n".join(f"{sentence}\tGuten Morgen." for sentence in SENTENCES)
    scores = client.score(SENTENCES, ["Guten Morgen."] * 5, model="en-de")
    expected = "".join(f"{score.mean_log_probability:.6f}\n" for score in scores)
    for place in (["--address", server.address], ["--models", str(BUNDLE)]):
        done = run("score", *place, stdin=pairs.encode())
        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, expected, b"")
