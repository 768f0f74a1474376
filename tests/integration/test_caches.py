"""Kept, shared or decoded afresh, a sentence gets bit for bit the same: on real graphs, the default model's too."""

import asyncio
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import Bundle, find_bundles
from dragoman.tokenizer import Tokenizer
from service.decode import Decode, FinishReason
from service.engine.encoder_cache import EncoderMemoryCache
from service.engine.engine import Engine
from service.engine.graphs import open_graphs
from service.options import Decoding, RequestOptions
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.segment import Segment
from service.telemetry.metrics import Metrics
from tests import synthetic
from tests.engine_harness import OpenBatch, Trace, decode_alone
from tests.examples import ON_GRAPHS, ON_THREADS
from tests.idle import wait_idle
from tests.invariants import snapshot_of, violations
from tests.synthetic import Synthetic

REPOSITORY = Path(__file__).parents[2]
SHIPPED = find_bundles(REPOSITORY / "models")
PATIENCE_S = 60
LIMIT = 12
UNBOUNDED = 1_000_000
TEXTS = 5  # few, so that most come again


class Subject:
    """A bundle and its sessions, loaded once."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer) -> None:
        self.bundle = bundle
        self.graphs = open_graphs(bundle, "cpu")
        self.sources = [[*tokenizer.encode(text), bundle.manifest.eos_id] for text in synthetic.texts()[:TEXTS]]
        self.alone = cache(self._alone)

    def decode(self, text: int) -> Decode:
        return Decode(list(self.sources[text]), LIMIT)

    def _alone(self, text: int) -> Trace:
        return decode_alone(self.bundle.manifest, self.graphs, self.sources[text], LIMIT)


@pytest.fixture(scope="module", params=["fp32", "int8", *SHIPPED], ids=lambda p: str(p).removeprefix(str(REPOSITORY)))
def subject(request: pytest.FixtureRequest) -> Subject:
    """Each synthetic precision, and each bundle that comes with the repository."""
    if isinstance(request.param, Path):
        return Subject(Bundle.open(request.param), Tokenizer.open(request.param))
    made: Synthetic = request.getfixturevalue(request.param)
    return Subject(made.bundle, made.tokenizer)


texts = st.integers(0, TEXTS - 1)


@ON_GRAPHS
@given(
    slots=st.integers(1, 6),
    room_bytes=st.sampled_from([10_000, 10_000_000]),
    arrivals=st.lists(st.lists(texts, max_size=4), min_size=2, max_size=12),
)
def test_a_known_encoder_memory_leaves_the_same_in_every_row(
    subject: Subject, slots: int, room_bytes: int, arrivals: list[list[int]]
) -> None:
    metrics, mailbox = Metrics(), Mailbox(UNBOUNDED)
    known = EncoderMemoryCache(room_bytes, metrics.of("known"))
    opened = OpenBatch(subject.bundle.manifest, subject.graphs, mailbox, metrics, slots=slots, cache=known)
    batch = opened.batch
    segments: dict[Decode, int] = {}
    while arrivals or mailbox.unfinished:
        if arrivals:
            came = {subject.decode(text): text for text in arrivals.pop()}
            segments |= came
            mailbox.submit(list(came))
        batch.step(wait=False)
        snapshot = snapshot_of(batch)
        assert violations(snapshot) == []
        for slot, (segment, length) in enumerate(zip(snapshot.active, snapshot.lengths, strict=True)):
            alone = subject.alone(segments[segment])
            caches, memory = opened.rows()
            np.testing.assert_array_equal(caches[:, :, slot, :, :length], alone.caches[..., :length, :])
            np.testing.assert_array_equal(memory[:, :, slot, :, : len(segment.source_ids)], alone.memory)
    for segment, text in segments.items():
        assert segment.target_ids == subject.alone(text).target_ids
    found, made = (metrics.total(f"encoder_memory_cache_{name}_total") for name in ("hits", "misses"))
    assert found + made == len(segments)
    if room_bytes == 10_000_000:
        assert made == len(set(segments.values()))


class Caller(NamedTuple):
    """Waits a few rounds of the event loop, submits, perhaps leaves after so many words about its segments."""

    rounds: int
    texts: list[int]
    limit: int
    wants_deltas: bool
    asks: bool  # for log-probabilities
    leaves_after: int | None


callers = st.builds(
    Caller,
    rounds=st.integers(0, 30),
    texts=st.lists(texts, min_size=1, max_size=5),
    limit=st.just(LIMIT) | st.integers(1, LIMIT),
    wants_deltas=st.booleans(),
    asks=st.booleans(),
    leaves_after=st.none() | st.none() | st.integers(0, 10),
)


class Conversation:
    """Callers on an event loop, a result cache, and a running engine of two threads that remembers memories."""

    def __init__(self, subject: Subject, slots: int, *, result_bytes: int, coalesce: bool) -> None:
        self.subject = subject
        self.metrics = Metrics()
        self.mailbox = Mailbox(UNBOUNDED)
        self.engine = Engine(
            subject.bundle,
            self.mailbox,
            self.metrics,
            device="cpu",
            threads=2,
            slots=slots,
            encoder_cache_bytes=100_000,
        )
        self._result_bytes, self._coalesce = result_bytes, coalesce
        self.outcomes: list[tuple[int, Segment, bool]] = []  # text, segment, whether it left

    async def hold(self, callers: list[Caller]) -> None:
        loop = asyncio.get_running_loop()
        faults: list[dict] = []
        loop.set_exception_handler(lambda _, context: faults.append(context))
        self.mailbox.bind(loop)
        self.intake = Intake(
            self.mailbox, self.metrics.of("m"), limit_bytes=self._result_bytes, coalesce=self._coalesce
        )
        self.engine.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*map(self.call, callers))
            assert await asyncio.to_thread(wait_idle, self.mailbox, PATIENCE_S)
            await asyncio.sleep(0)
            assert self.intake.unfinished == self.mailbox.unfinished == 0
            assert not faults
        finally:
            await asyncio.to_thread(self.engine.stop)
        for batch in self.engine.batches:
            assert violations(snapshot_of(batch)) == []
            assert len(batch.runner.scheduler.active) == 0

    async def call(self, caller: Caller) -> None:
        for _ in range(caller.rounds):
            await asyncio.sleep(0)
        words: asyncio.Queue[Segment] = asyncio.Queue()
        left = False

        def note(segment: Segment) -> None:
            assert not left or segment not in waiting, "told after it left"
            words.put_nowait(segment)

        decoding = Decoding(wants_log_probability=caller.asks)
        options = RequestOptions(wants_deltas=caller.wants_deltas)
        segments: dict[Segment, int] = {}
        for text in caller.texts:
            decode = Decode(list(self.subject.sources[text]), caller.limit, decoding=decoding)
            segments[Segment(decode, options, on_progress=note)] = text
        waiting, heard = set(segments), 0
        self.intake.submit(list(segments))
        while waiting and heard != caller.leaves_after:
            segment = await words.get()
            heard += 1
            if segment.finished:
                waiting.discard(segment)
        left = True
        self.intake.cancel(waiting)
        self.outcomes += [(text, segment, segment in waiting) for segment, text in segments.items()]

    def count(self, name: str) -> float:
        return self.metrics.total(f"{name}_total")


@ON_THREADS
@given(
    slots=st.integers(1, 6),
    result_bytes=st.sampled_from([0, 1_500, 1_000_000]),
    coalesce=st.booleans(),
    callers=st.lists(callers, min_size=1, max_size=12),
)
def test_whoever_shares_or_comes_again_gets_the_plain_result(
    subject: Subject, slots: int, result_bytes: int, coalesce: bool, callers: list[Caller]
) -> None:
    conversation = Conversation(subject, slots, result_bytes=result_bytes, coalesce=coalesce)
    asyncio.run(conversation.hold(callers))
    for text, segment, left in conversation.outcomes:
        decode = segment.decode
        target_ids, log_probabilities, *_ = subject.alone(text)
        alone = target_ids[: decode.max_target_tokens]
        assert segment.finished
        assert decode.error is None
        if left:
            assert decode.target_ids == alone[: len(decode.target_ids)]
        else:
            assert decode.finish_reason in (FinishReason.EOS, FinishReason.LENGTH)
            assert decode.target_ids == alone
            asked = decode.decoding.wants_log_probability
            assert decode.log_probability == (log_probabilities[decode.decoded_tokens] if asked else 0.0)
    # Every segment found its result, shared a flight, or had one of its own.
    total = sum(len(caller.texts) for caller in callers)
    shared, hits = conversation.count("coalesced_segments"), conversation.count("result_cache_hits")
    if result_bytes:
        assert hits + shared + conversation.count("result_cache_misses") == total
    if not coalesce:
        assert shared == 0


def test_what_was_decoded_is_not_decoded_again(subject: Subject) -> None:
    conversation = Conversation(subject, slots=2, result_bytes=1_000_000, coalesce=True)
    every = [Caller(0, [0, 1, 2, 3, 4, 0], LIMIT, False, True, None)]

    async def twice() -> None:
        await conversation.hold(every)
        tokens = conversation.count("target_tokens")
        assert tokens > 0
        # The engine has stopped: whatever is answered now is remembered.
        await conversation.call(every[0])
        assert conversation.count("target_tokens") == tokens

    asyncio.run(twice())
    assert conversation.count("result_cache_hits") == 6
    assert conversation.count("coalesced_segments") == 1
    first, second = conversation.outcomes[:6], conversation.outcomes[6:]
    before, after = ([segment.decode for _, segment, _ in half] for half in (first, second))
    assert [decode.target_ids for decode in before] == [decode.target_ids for decode in after]
    log_probabilities = [decode.log_probability for decode in before]
    assert log_probabilities == [decode.log_probability for decode in after]
    assert max(log_probabilities) < 0
