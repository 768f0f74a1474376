"""Texts with translations that are given: the segment of each, or what is wrong with it."""

import pytest

from dragoman.errors import InvalidRequestError
from dragoman.language_marks import LanguageMarks, Languages
from plugins.offline.texts import score_offline
from plugins.scoring.pair import Pair, open_pair
from service.decode import Decode, FinishReason
from service.options import SCORING, RequestOptions
from service.text.document import Document
from service.text.translator import Translator
from tests.unit.service.played_segments import end

OPTIONS = RequestOptions(decoding=SCORING)


@pytest.fixture(scope="session")
def translator(manifest, tokenizer) -> Translator:
    return Translator(manifest, tokenizer)


def read(translator: Translator, source: str, target: str, prefix: str = "") -> Document:
    document = open_pair(translator, Pair(source, target, prefix), OPTIONS)
    document.read_all()
    return document


def test_a_pair_is_one_segment_whatever_is_in_it(translator, tokenizer, manifest) -> None:
    [segment] = read(translator, "tom. good\ntom", "tom. tom").segments
    assert segment.decode.source_ids == [*tokenizer.encode("tom. good\ntom"), manifest.eos_id]
    assert segment.decode.scored_ids == (*tokenizer.encode_target("tom. tom"), manifest.eos_id)
    assert (segment.decode.max_target_tokens, segment.decode.prefix_ids) == (len(segment.decode.scored_ids), ())


def test_both_sides_of_a_pair_count_in_the_queue(translator) -> None:
    document = read(translator, "tom", "schön schön")
    [segment] = document.segments
    assert document.text_bytes == segment.decode.text_bytes == len("tom" + "schön schön") + 2
    assert segment.decode.cost == len(segment.decode.source_ids) + len(segment.decode.scored_ids)


def test_marks_of_languages_stand_around_a_pair(manifest, tokenizer) -> None:
    marks = {"en": LanguageMarks(source_prefix=(5, 6)), "de": LanguageMarks(target_prefix=(8,))}
    languages = Languages(sources=("en",), targets=("de",), marks=marks)
    marked = Translator(manifest.model_copy(update={"languages": languages}), tokenizer)
    [segment] = read(marked, "tom", "tom").segments
    assert segment.decode.source_ids[:2] == [5, 6]
    assert segment.decode.start_ids == (manifest.start_id, 8)
    assert segment.source_tokens == len(tokenizer.encode("tom"))
    assert segment.decode.scored_ids[0] != 8


def test_the_result_has_the_score_of_each_token(translator, tokenizer) -> None:
    document = read(translator, "tom", "good tom")
    [segment] = document.segments
    decode: Decode = segment.decode
    decode.target_ids.extend(segment.decode.scored_ids[:-1])
    decode.token_log_probabilities = [-0.5 * place for place in range(len(segment.decode.scored_ids))]
    decode.log_probability = sum(decode.token_log_probabilities)
    end(segment, FinishReason.EOS)
    result = document.result()
    pieces = tokenizer.target_pieces(segment.decode.scored_ids)
    assert list(result.token_scores) == list(zip(pieces, decode.token_log_probabilities, strict=True))
    assert pieces[-1] == "</s>"
    assert result.log_probability == decode.log_probability
    assert result.mean_log_probability == decode.log_probability / len(pieces)
    assert (result.source_tokens, result.target_tokens) == (len(tokenizer.encode("tom")), len(pieces) - 1)


@pytest.mark.parametrize(
    ("source", "target", "field", "said"),
    [
        ("", "tom", "source_text", "must be at least 1 token of the model, is 0: it is empty or blank"),
        ("tom", "", "target_text", "must be at least 1 token of the model, is 0: it is empty or blank"),
        ("", "", "source_text", "must be at least 1 token"),
        ("x" * 24, "tom", "source_text", "must be at most 23 tokens of the model, is "),
        ("tom", "x" * 32, "target_text", "must be at most 31 tokens of the model, is "),
        ("a" * 1_000_000, "tom", "source_text", "must be at most 23 tokens of the model, is 1000000 characters"),
        ("tom", "a" * 1_000_000, "target_text", "must be at most 31 tokens of the model, is 1000000 characters"),
    ],
)
def test_a_pair_that_cannot_be_scored_says_why(translator, source: str, target: str, field: str, said: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        read(translator, source, target, "pairs[3].")
    [violation] = refused.value.violations
    assert violation.field == f"pairs[3].{field}"
    assert violation.description.startswith(said)


def test_the_longest_texts_that_the_model_has_room_for_are_scored(translator, tokenizer, manifest) -> None:
    source = next("x" * n for n in range(24, 0, -1) if len(tokenizer.encode("x" * n)) == 23)
    target = next("x" * n for n in range(32, 0, -1) if len(tokenizer.encode_target("x" * n)) == 31)
    [segment] = read(translator, source, target).segments
    assert (len(segment.decode.source_ids), len(segment.decode.scored_ids)) == (
        manifest.max_source_tokens,
        manifest.max_target_tokens,
    )


def test_pairs_are_scored_offline_each_or_its_error(translator) -> None:
    class Played:
        def decode(self, decodes: list[Decode]) -> None:
            for decode in decodes:
                decode.target_ids.extend(decode.scored_ids[:-1])
                decode.token_log_probabilities = [-1.0] * len(decode.scored_ids)
                decode.log_probability = -1.0 * len(decode.scored_ids)
                decode.finish(FinishReason.EOS, 0.0)

    good, bad, other = score_offline(
        translator, Played(), [Pair("tom", "tom"), Pair("", "x"), Pair("tom", "o")], OPTIONS
    )
    assert isinstance(bad, InvalidRequestError)
    assert good.mean_log_probability == other.mean_log_probability == -1.0
    assert len(good.token_scores) == good.target_tokens + 1
