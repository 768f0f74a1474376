import dataclasses

import pytest

from dragoman.answers import (
    Alternative,
    DetectedLanguage,
    Model,
    Score,
    SegmentQuality,
    TokenScore,
    Translation,
    WordAlignment,
    detected_of,
    model_of,
    score_of,
    translation_delta_of,
    translation_of,
)
from dragoman.errors import InternalError, to_text_error
from dragoman.v1 import translation_pb2 as pb

TRANSLATED = pb.TranslatedText(
    translated_text="Guten Morgen.",
    model="en-de",
    source_tokens=4,
    target_tokens=3,
    finish_reason=pb.FINISH_REASON_LENGTH,
    segments=2,
)


def test_translation() -> None:
    assert translation_of(TRANSLATED) == Translation("Guten Morgen.", "en-de", 4, 3, "LENGTH", 2)


def test_a_mean_log_probability_is_there_only_when_the_message_has_one() -> None:
    assert translation_of(TRANSLATED).mean_log_probability is None
    for value in (-1.5, 0.0):
        scored = pb.TranslatedText(mean_log_probability=value)
        assert translation_of(pb.TranslatedText.FromString(scored.SerializeToString())).mean_log_probability == value


def test_every_field_of_a_translation_is_read() -> None:
    filled = pb.TranslatedText(
        unknown_pieces=3, split=True, text_error=to_text_error(InternalError("broken")), beam_size=4
    )
    translation = translation_of(filled)
    assert (translation.unknown_pieces, translation.split, translation.beam_size) == (3, True, 4)
    assert isinstance(translation.error, InternalError)
    assert translation_of(TRANSLATED).error is None
    assert len(dataclasses.fields(translation)) == len(pb.TranslatedText.DESCRIPTOR.fields)


def test_a_detected_language_is_read_with_its_confidence() -> None:
    message = pb.TranslatedText(detected_language_code="de", detection_confidence=0.75)
    assert (translation_of(message).detected_language, translation_of(message).detection_confidence) == ("de", 0.75)
    assert (translation_of(TRANSLATED).detected_language, translation_of(TRANSLATED).detection_confidence) == ("", 0.0)
    several = [pb.DetectedLanguage(language_code="de", confidence=0.5), pb.DetectedLanguage(language_code="nl")]
    assert detected_of(pb.DetectedLanguages(languages=several)) == [("de", 0.5), ("nl", 0.0)]
    assert len(DetectedLanguage._fields) == len(pb.DetectedLanguage.DESCRIPTOR.fields)


def test_a_seed_is_there_only_when_the_message_has_one() -> None:
    assert translation_of(TRANSLATED).seed is None
    for seed in (0, 2**32 - 1):
        drawn = pb.TranslatedText(seed=seed)
        assert translation_of(pb.TranslatedText.FromString(drawn.SerializeToString())).seed == seed


def test_alignments_are_read_in_their_order() -> None:
    message = pb.TranslatedText(
        alignments=[
            pb.WordAlignment(source_end=4, target_start=6, target_end=9, weight=0.5),
            pb.WordAlignment(source_start=5, source_end=12, target_start=10, target_end=12, weight=1.0),
        ]
    )
    assert translation_of(message).alignments == (WordAlignment(0, 4, 6, 9, 0.5), WordAlignment(5, 12, 10, 12, 1.0))
    assert len(WordAlignment._fields) == len(pb.WordAlignment.DESCRIPTOR.fields)
    assert translation_of(TRANSLATED).alignments == ()


def test_quality_estimates_are_read_and_none_is_no_zero() -> None:
    qualities = [pb.SegmentQuality(target_end=4, quality_estimate=0.5), pb.SegmentQuality(target_start=5, target_end=9)]
    read = translation_of(pb.TranslatedText(quality_estimate=0.0, segment_qualities=qualities))
    assert read.quality_estimate == 0.0
    assert read.segment_qualities == (SegmentQuality(0, 4, 0.5), SegmentQuality(5, 9, 0.0))
    assert len(SegmentQuality._fields) == len(pb.SegmentQuality.DESCRIPTOR.fields)
    assert (translation_of(TRANSLATED).quality_estimate, translation_of(TRANSLATED).segment_qualities) == (None, ())


def test_alternatives_are_read_in_their_order() -> None:
    message = pb.TranslatedText(
        alternatives=[
            pb.Alternative(
                translated_text="Guten Morgen.",
                score=-0.5,
                mean_log_probability=-0.25,
                finish_reason=pb.FINISH_REASON_EOS,
            ),
            pb.Alternative(translated_text="Guten Tag.", score=-1.5, finish_reason=pb.FINISH_REASON_LENGTH),
        ]
    )
    assert translation_of(message).alternatives == (
        Alternative("Guten Morgen.", -0.5, -0.25, "EOS"),
        Alternative("Guten Tag.", -1.5, 0.0, "LENGTH"),
    )
    assert len(Alternative._fields) == len(pb.Alternative.DESCRIPTOR.fields)
    assert translation_of(TRANSLATED).alternatives == ()


def test_a_finish_reason_of_a_later_server_is_its_number() -> None:
    later = pb.TranslatedText.FromString(TRANSLATED.SerializeToString() + b"\x28\x63")
    assert translation_of(later).finish_reason == "99"


@pytest.mark.parametrize("name", pb.FinishReason.keys())
def test_every_finish_reason_has_its_name(name: str) -> None:
    message = pb.TranslatedText(finish_reason=pb.FinishReason.Value(name))
    assert "FINISH_REASON_" + translation_of(message).finish_reason == name


def test_every_field_of_a_score_is_read() -> None:
    tokens = [pb.TokenScore(piece="▁Ja", log_probability=-0.5), pb.TokenScore(piece="</s>", log_probability=-1.0)]
    message = pb.TextScore(
        model="m", log_probability=-1.5, mean_log_probability=-0.75, tokens=tokens, source_tokens=3, target_tokens=1
    )
    expected = Score("m", -1.5, -0.75, (TokenScore("▁Ja", -0.5), TokenScore("</s>", -1.0)), 3, 1)
    assert score_of(message) == expected
    failed = score_of(pb.TextScore(model="m", text_error=to_text_error(InternalError("broken"))))
    assert (failed.model, failed.tokens, type(failed.error)) == ("m", (), InternalError)
    assert len(dataclasses.fields(Score)) == len(pb.TextScore.DESCRIPTOR.fields)
    assert len(TokenScore._fields) == len(pb.TokenScore.DESCRIPTOR.fields)


def test_a_delta_has_a_result_only_when_the_message_has() -> None:
    piece = translation_delta_of(pb.StreamTranslateTextResponse(content_index=3, text_delta="Gu"))
    assert (piece.content_index, piece.text, piece.result) == (3, "Gu", None)
    last = translation_delta_of(pb.StreamTranslateTextResponse(result=TRANSLATED))
    assert (last.content_index, last.text, last.result) == (0, "", translation_of(TRANSLATED))


def test_every_field_of_a_model_is_read() -> None:
    values = ("m", "", "de", "int8", 128, 256, 8000, "ab" * 32, ("en", "fr"), ("de",), "marian", "news")
    message = pb.Model(**dict(zip(pb.Model.DESCRIPTOR.fields_by_name, values, strict=True)))
    assert dataclasses.astuple(model_of(message)) == values
    assert len(dataclasses.fields(Model)) == len(values)


def test_a_server_that_lists_no_languages_has_those_of_a_pair() -> None:
    model = model_of(pb.Model(name="en-de", source_language_code="en", target_language_code="de"))
    assert (model.source_languages, model.target_languages) == (("en",), ("de",))
