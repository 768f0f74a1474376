"""Decodes driven to their ends without a server, on the synthetic model."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from structlog.testing import capture_logs

from dragoman.errors import TextFailedError
from service.decode import Decode, FinishReason
from service.engine.dry_run import drive
from service.engine.graphs import open_graphs
from service.engine.runner import Runner
from tests.engine_harness import fail_encoder
from tests.synthetic import MAX_TARGET_TOKENS, Synthetic

pytestmark = pytest.mark.torch

EOS = 2
SOURCES = [[token, token + 1, EOS] for token in range(3, 12)]

Drive = Callable[..., list[Decode]]


@pytest.fixture(scope="module")
def drive_all(fp32: Synthetic) -> Drive:
    graphs = open_graphs(fp32.bundle, "cpu")

    def drive_all(slots: int, waves: Sequence[Sequence[list[int]]], limit: int = MAX_TARGET_TOKENS, **options):
        decodes = [[Decode(source, limit) for source in wave] for wave in waves]
        drive(Runner(fp32.bundle.manifest, *graphs, slots), EOS, decodes, **options)
        return [decode for wave in decodes for decode in wave]

    return drive_all


@pytest.mark.parametrize("slots", [1, 4, 20])
def test_all_waves_end_as_each_sentence_does_alone(drive_all: Drive, slots: int) -> None:
    expected = [drive_all(1, [[source]])[0].target_ids for source in SOURCES]
    decodes = drive_all(slots, [SOURCES[:5], [], SOURCES[5:6], SOURCES[6:]])
    assert [decode.target_ids for decode in decodes] == expected
    assert {decode.finish_reason for decode in decodes} <= {FinishReason.EOS, FinishReason.LENGTH}


def test_nothing_to_do_ends_at_once(drive_all: Drive) -> None:
    assert drive_all(2, []) == drive_all(2, [[], []]) == []


def test_somebody_sees_the_logits_of_every_token(drive_all: Drive) -> None:
    seen: list[tuple[Decode, int]] = []

    def watch(decode: Decode, logits: NDArray[np.floating]) -> None:
        seen.append((decode, int(logits.argmax())))

    decodes = drive_all(2, [SOURCES[:3]], limit=4, watch=watch)
    for decode in decodes:
        tokens = [token for each, token in seen if each is decode]
        assert tokens[: len(decode.target_ids)] == decode.target_ids
        assert len(tokens) == decode.decoded_tokens


def test_a_source_on_which_the_encoder_fails_ends_alone(drive_all: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_encoder(monkeypatch, lambda source: source == SOURCES[1])
    with capture_logs():
        decodes = drive_all(2, [SOURCES[:3]], limit=2)
    assert [type(decode.error) for decode in decodes] == [type(None), TextFailedError, type(None)]
