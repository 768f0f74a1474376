import pytest

from dragoman.errors import InternalError
from service.decode import Decode, DecodeStatus, FinishReason, Hypothesis
from service.options import Decoding


def test_a_new_decode_waits() -> None:
    decode = Decode([5, 2], 10)
    assert decode.status is DecodeStatus.WAITING
    assert not decode.finished
    decode.on_progress(decode)  # nobody listens, and that is no error


@pytest.mark.parametrize("status", DecodeStatus)
def test_finished_follows_from_the_status(status: DecodeStatus) -> None:
    decode = Decode([2], 1, status=status)
    assert decode.finished is (status in (DecodeStatus.FINISHED, DecodeStatus.CANCELLED))


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (FinishReason.EOS, DecodeStatus.FINISHED),
        (FinishReason.LENGTH, DecodeStatus.FINISHED),
        (FinishReason.REPETITION, DecodeStatus.FINISHED),
        (FinishReason.CANCELLED, DecodeStatus.CANCELLED),
    ],
)
def test_an_end_without_error(reason: FinishReason, status: DecodeStatus) -> None:
    decode = Decode([2], 1)
    decode.finish(reason, 7.0)
    assert (decode.finish_reason, decode.status, decode.finished_s) == (reason, status, 7.0)
    assert decode.error is None


def test_an_end_with_an_error_has_no_reason_but_the_error() -> None:
    decode, error = Decode([2], 1), InternalError("broken")
    decode.fail(error, 7.0)
    assert decode.error is error
    assert (decode.finish_reason, decode.status, decode.finished_s) == (None, DecodeStatus.FINISHED, 7.0)


@pytest.mark.parametrize(("reason", "tokens"), [(None, 2), (FinishReason.LENGTH, 2), (FinishReason.EOS, 3)])
def test_the_end_of_sentence_token_was_decoded_too(reason: FinishReason | None, tokens: int) -> None:
    decode = Decode([2], 9)
    decode.target_ids += [5, 6]
    if reason is not None:
        decode.finish(reason, 3.0)
    assert decode.decoded_tokens == tokens


def test_equal_decodes_are_two() -> None:
    assert len({Decode([2], 1), Decode([2], 1)}) == 2


def test_decodes_do_not_share_their_tokens() -> None:
    first, second = Decode([2], 1), Decode([2], 1)
    first.target_ids.append(5)
    assert second.target_ids == []


@pytest.mark.parametrize(
    ("reason", "start_ids", "score"),
    [(FinishReason.EOS, (), -2.0), (FinishReason.LENGTH, (), -3.0), (FinishReason.EOS, (1, 7), -1.5)],
)
def test_the_one_hypothesis_of_a_greedy_decode_is_its_translation(reason, start_ids, score: float) -> None:
    decode = Decode([5, 2], 10, start_ids=start_ids, target_ids=[8, 9], log_probability=-6.0)
    decode.finish(reason, 1.0)
    assert decode.best == (Hypothesis([8, 9], -6.0, score, reason, decode.decoded_tokens),)


def test_a_beam_without_alternatives_scores_its_translation_by_its_penalty() -> None:
    penalised = Decoding.of(beam_size=4, length_penalty=2.0)
    decode = Decode([5, 2], 10, decoding=penalised, target_ids=[8], log_probability=-6.0)
    decode.finish(FinishReason.EOS, 1.0)
    assert decode.best[0].score == -1.5


def test_the_best_translations_are_those_that_a_search_has_found() -> None:
    found = [Hypothesis([8], -1.0, -0.5, FinishReason.EOS, 2), Hypothesis([9], -2.0, -1.0, FinishReason.EOS, 2)]
    decode = Decode([5, 2], 10, target_ids=[8], hypotheses=found)
    decode.finish(FinishReason.EOS, 1.0)
    assert decode.best == found


def test_one_that_was_withdrawn_before_its_first_token_has_a_hypothesis_too() -> None:
    decode = Decode([5, 2], 10)
    decode.finish(FinishReason.CANCELLED, 1.0)
    assert decode.best == (Hypothesis([], 0.0, 0.0, FinishReason.CANCELLED, 0),)
