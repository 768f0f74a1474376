"""The sentences of the package, and those of a user, between the marks of their languages."""

from collections import Counter
from pathlib import Path

import pytest

from dragoman.bundle import AlignmentHeads, Manifest, Provenance
from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks, Languages
from dragoman.tokenizer import Tokenizer
from export.samples import Sample, drawn, fitting, of_corpus, shipped
from model.corpus import Corpus
from model.transformer import Transformer
from tests.hugging_face_files import sentences, train
from tests.marian_bin import vocabulary

CODES = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "tr", "ar", "zh-Hans"]
SENTENCES = 40


@pytest.fixture(scope="module")
def tokenizer(loaded: tuple[Transformer, Tokenizer]) -> Tokenizer:
    return loaded[1]


def manifest(languages: Languages) -> Manifest:
    ids = {"pad_id": 0, "start_id": 1, "eos_id": 2, "unknown_id": 3, "vocabulary_size": 400}
    shape = {"d_model": 8, "heads": 1, "head_dim": 8, "encoder_layers": 1, "decoder_layers": 1, "parameters": 1}
    return Manifest(
        name="any",
        languages=languages,
        precision="fp32",
        **ids,
        **shape,
        max_source_tokens=128,
        max_target_tokens=128,
        alignment=AlignmentHeads(layer=0, heads=(0,)),
        provenance=Provenance(checkpoint_sha256=""),
        files={},
    )


def test_a_pair_gets_the_sentences_of_its_source(tokenizer: Tokenizer) -> None:
    samples = shipped(manifest(Languages.pair("en", "fi")), tokenizer)
    assert len(samples) == SENTENCES
    text = "Good morning, how are you today?"
    assert samples[0] == Sample([*tokenizer.encode(text), 2], (1,), text=text)


def test_a_model_of_many_languages_gets_them_all_with_their_marks(tokenizer: Tokenizer) -> None:
    codes = [*CODES, "fi"]
    marks = {
        code: LanguageMarks(source_prefix=(100 + place,), target_prefix=(200 + place,))
        for place, code in enumerate(codes)
    }
    samples = shipped(manifest(Languages(sources=tuple(codes), targets=tuple(codes), marks=marks)), tokenizer)
    assert Counter(sample.source[0] for sample in samples) == {100 + place: SENTENCES for place in range(len(CODES))}
    assert {sample.source[-1] for sample in samples} == {2}
    assert all(sample.start_ids[0] == 1 and len(sample.start_ids) == 2 for sample in samples)
    assert all(sample.start_ids[1] != sample.source[0] + 100 for sample in samples)  # into another language
    for place in range(len(CODES)):
        assert len({sample.start_ids for sample in samples if sample.source[0] == 100 + place}) == 4


def test_other_codes_of_a_language_are_known(tokenizer: Tokenizer) -> None:
    languages = Languages(sources=("zh",), targets=("de", "en"), marks={"zh": LanguageMarks(aliases=("zho_Hans",))})
    assert len(shipped(manifest(languages), tokenizer)) == SENTENCES


def test_of_a_language_without_sentences_pieces_are_drawn_as_often_as_they_were_seen() -> None:
    tokenizer = Tokenizer.of({Path("tokenizer.model"): vocabulary("")})
    finnish = manifest(Languages.pair("fi", "en"))
    assert shipped(finnish, tokenizer) == []
    samples = drawn(finnish, tokenizer)
    assert samples == drawn(finnish, tokenizer)
    assert len(samples) == 160
    assert all(len(sample.source) > 3 for sample in samples)
    pieces = Counter(id_ for sample in samples for id_ in tokenizer.encode(sample.text))
    processor = tokenizer.source_processor
    frequent = max(range(300), key=lambda id_: processor.get_score(id_) or -99)
    assert frequent in [id_ for id_, _ in pieces.most_common(5)]


def test_a_language_without_sentences_is_named_where_the_pieces_have_no_frequencies() -> None:
    english, german = sentences()
    pairs = train([*english, *german], vocab_size=300, model_type="bpe")
    with pytest.raises(DataError, match=r"^no sentences in fi come with Dragoman: give some with --data$"):
        drawn(manifest(Languages.pair("fi", "en")), Tokenizer.of({Path("tokenizer.model"): pairs}))


def test_the_sentences_of_a_user(tokenizer: Tokenizer) -> None:
    pair = manifest(Languages.pair("fi", "en"))
    [plain] = of_corpus(Corpus(["a b"], [], []), pair, tokenizer)
    [referenced] = of_corpus(Corpus(["a b"], ["c"], []), pair, tokenizer)
    assert plain == Sample([*tokenizer.encode("a b"), 2], (1,), text="a b")
    assert referenced == plain._replace(reference="c")


def test_only_short_ones_fit() -> None:
    samples = [Sample([5, 6, 2], (1,)), Sample([5, 2], (1,))]
    assert fitting(samples, 3) == samples
    assert fitting(samples, 2) == samples[1:]
    with pytest.raises(DataError, match="every source has more than 1 tokens"):
        fitting(samples, 1)
