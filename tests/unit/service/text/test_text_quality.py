"""Quality estimates of texts, whose translations are themselves here, with what is to be decoded for them."""

import numpy as np
import pytest

from dragoman.bundle import Manifest
from dragoman.glossary import GlossaryEntry
from dragoman.tokenizer import Tokenizer
from plugins.offline.texts import translate_offline
from plugins.quality.counts import count
from plugins.quality.estimate import COUNTED_ALONE, QualityEstimator
from plugins.terms.finding import Index
from plugins.terms.terms import Terms
from service.decode import Decode, FinishReason
from service.options import Decoding, RequestOptions
from service.text.result import TextResult
from service.text.text_quality import TextQuality, without
from service.text.translator import Translator

ASKING = RequestOptions(quality_estimate=True)


class Echo:
    """Decodes every segment to its source, each token with a log-probability of -0.5, to at most so many tokens."""

    def __init__(self, most: int = 1_000) -> None:
        self.most = most
        self.decodings: list[Decoding] = []

    def decode(self, decodes: list[Decode]) -> None:
        for decode in decodes:
            self.decodings.append(decode.decoding)
            decode.target_ids.extend(decode.source_ids[:-1][: self.most])
            if decode.decoding.wants_attention:
                decode.attention.extend(np.eye(len(decode.source_ids), dtype=np.float32)[: len(decode.target_ids)])
            decode.finish(
                FinishReason.EOS if len(decode.target_ids) == len(decode.source_ids) - 1 else FinishReason.LENGTH, 0.0
            )
            if decode.decoding.wants_log_probability:
                decode.log_probability = -0.5 * decode.decoded_tokens


@pytest.fixture
def calibrated(manifest: Manifest) -> Manifest:
    weights = COUNTED_ALONE.model_copy(update={"mean_log_probability": 2.0})
    return manifest.model_copy(update={"quality": weights})


def translated(
    manifest: Manifest, tokenizer: Tokenizer, text: str, options: RequestOptions = ASKING, engine: Echo | None = None
) -> TextResult:
    [result] = translate_offline(Translator(manifest, tokenizer), engine or Echo(), [text], options)
    return result


def test_nothing_is_computed_for_who_does_not_ask(calibrated: Manifest, tokenizer: Tokenizer) -> None:
    engine = Echo()
    result = translated(calibrated, tokenizer, "good morning", RequestOptions(), engine)
    assert (result.quality_estimate, result.segment_qualities) == (None, ())
    assert not engine.decodings[0].wants_log_probability


def test_only_a_calibrated_model_needs_log_probabilities(manifest, calibrated, tokenizer) -> None:
    for model, needs in ((manifest, False), (calibrated, True)):
        engine = Echo()
        translated(model, tokenizer, "good morning", engine=engine)
        assert engine.decodings[0].wants_log_probability is needs


def test_an_estimate_is_made_of_what_was_counted_and_how_sure_the_model_was(calibrated, tokenizer) -> None:
    result = translated(calibrated, tokenizer, "  good morning\n")
    counted = count("good morning", result.text.strip(), unknown_pieces=result.unknown_pieces)
    expected = QualityEstimator(calibrated.quality).estimate(counted, -0.5)
    assert result.quality_estimate == expected
    [quality] = result.segment_qualities
    assert result.text[quality.start : quality.stop] == result.text.strip()


def test_a_text_without_words_has_no_estimate(calibrated: Manifest, tokenizer: Tokenizer) -> None:
    result = translated(calibrated, tokenizer, " ...\n")
    assert (result.quality_estimate, result.segment_qualities) == (None, [])


def test_each_segment_has_its_place_and_the_text_their_mean(manifest: Manifest, tokenizer: Tokenizer) -> None:
    engine = Echo(most=3)
    result = translated(manifest, tokenizer, "tom.\n\ngood morning tom good", engine=engine)
    first, second = result.segment_qualities
    assert (first.start, result.text[first.stop : second.start], second.stop) == (0, "\n\n", len(result.text))
    assert second.estimate < first.estimate  # more was cut off
    weights = (len("tom.") + 1, len("good morning tom good") + 1)
    mean = (first.estimate * weights[0] + second.estimate * weights[1]) / sum(weights)
    assert result.quality_estimate == pytest.approx(mean, abs=1e-4)


def test_places_count_tags_and_what_is_kept_is_not_missed(manifest: Manifest, tokenizer: Tokenizer) -> None:
    html = "<p>good <b>morning</b> <code>x17</code></p>"
    result = translated(manifest, tokenizer, html, ASKING._replace(has_tags=True))
    [quality] = result.segment_qualities
    assert result.text[quality.start : quality.stop] == result.text.removeprefix("<p>").removesuffix("</p>")


def test_what_a_glossary_replaces_is_not_missed(manifest: Manifest, tokenizer: Tokenizer) -> None:
    terms = Terms([Index([GlossaryEntry("Tom 17", ("Thomas",))])])
    document = Translator(manifest, tokenizer).open("good Tom 17 morning", ASKING._replace(terms=terms))
    assert [part.judged for part in document.read(9) if part.segment is not None] == ["good  morning"]


def test_spans_are_left_out() -> None:
    assert without("abcdef", [(0, 2), (1, 3), (5, 6)]) == "de"
    assert without("abc", []) == "abc"


def test_estimates_of_nothing_are_none() -> None:
    assert TextQuality(QualityEstimator(None), "", "").estimate is None
