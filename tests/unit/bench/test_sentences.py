from pathlib import Path

import numpy as np

from bench.sentences import Sentences, equal_sentences, random_lengths, random_sentences
from dragoman.bundle import Bundle
from service.options import Decoding

BUNDLE = Path(__file__).parents[3] / "models" / "en-de" / "bundle"


def test_sentences_are_picked_at_even_distances_with_their_limits() -> None:
    sentences = Sentences([[place, 2] for place in range(10)], list(range(100, 110)))
    picked = sentences.pick(4)
    assert [ids[0] for ids in picked.sources] == [0, 2, 5, 7]
    assert picked.limits == [100, 102, 105, 107]
    assert len(sentences.pick(99)) == 10


def test_lengths_are_spread_up_to_the_limit() -> None:
    lengths = random_lengths(np.random.default_rng(0), 20_000, 128)
    assert (lengths.min(), lengths.max()) == (1, 128)
    assert 8 <= np.median(lengths) <= 10


def test_random_sources_differ_and_end_and_fit_the_model() -> None:
    manifest = Bundle.open(BUNDLE).manifest
    random = np.random.default_rng(0)
    tokens, limits = random_lengths(random, 2000, manifest.max_source_tokens).tolist(), [7] * 2000
    sentences = random_sentences(manifest, tokens, limits, random)
    assert [len(ids) for ids in sentences.sources] == tokens
    assert {ids[-1] for ids in sentences.sources} == {manifest.eos_id}
    assert all(0 <= index < manifest.vocabulary_size for ids in sentences.sources for index in ids)
    longer = [tuple(ids) for ids in sentences.sources if len(ids) > 4]
    assert len(set(longer)) == len(longer)


def test_random_sources_are_the_same_each_time_where_no_chance_is_given() -> None:
    manifest = Bundle.open(BUNDLE).manifest
    assert random_sentences(manifest, [7], [9]) == random_sentences(manifest, [7], [9])


def test_each_sentence_becomes_a_segment() -> None:
    [first, second] = Sentences([[5, 2], [6, 7, 2]], [9, 10]).decodes()
    assert (first.source_ids, first.max_target_tokens) == ([5, 2], 9)
    assert (second.source_ids, second.max_target_tokens) == ([6, 7, 2], 10)


def test_each_segment_is_decoded_as_it_is_asked_for() -> None:
    decoding = Decoding(beam_size=4)
    assert [decode.decoding for decode in Sentences([[5, 2], [6, 2]], [9, 9]).decodes(decoding)] == [decoding] * 2


def test_sentences_are_equal_where_all_tokens_are() -> None:
    assert equal_sentences([[1, 2], [3], [], [4]], [[1, 2], [3, 3], [], [5]]) == 2
