"""The promises of the engine, on real graphs: whoever is in the batch, a sentence is decoded as if alone."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import Bundle, find_bundles
from dragoman.errors import DeadlineExceededError, InternalError
from dragoman.tokenizer import Tokenizer
from plugins import gpu
from plugins.gpu.device import DeviceEncoder, DeviceStep
from plugins.offline.engine import OfflineEngine, drive
from service.constraints import Constraints, Term
from service.decode import Decode, DecodeStatus, FinishReason
from service.engine.engine import Engine
from service.engine.graphs import Graphs, open_graphs
from service.engine.runner import Runner
from service.options import SCORING, Decoding, Sampling
from service.queue.mailbox import Mailbox
from service.runtime.host import EncoderSession
from service.runtime.slots import DecoderStep
from service.telemetry.metrics import Metrics
from tests import synthetic, synthetic_model
from tests.engine_harness import OpenBatch, Trace, decode_alone
from tests.examples import ON_GRAPHS, ON_THREADS
from tests.idle import wait_idle
from tests.invariants import snapshot_of, violations
from tests.synthetic import Synthetic
from tests.terms import holds

REPOSITORY = Path(__file__).parents[2]
SUBJECTS = [
    *("fp32", "int8", "fp32 resident", "int8 resident", "recurrent", "recurrent resident", "listed"),
    *find_bundles(REPOSITORY / "models"),
]
# One of each kind, for what does not depend on the numbers.
ONE_OF_EACH = ["int8", "int8 resident", "recurrent", "recurrent resident", "listed", REPOSITORY / "models/en-de/bundle"]
PATIENCE_S = 60
LIMIT = synthetic.MAX_TARGET_TOKENS
UNBOUNDED = 1_000_000
LASTING = (FinishReason.EOS, FinishReason.LENGTH)
BEGINS_WORD = frozenset(range(0, 40_000, 2))
EXPIRED_S = 0.0  # on the clock of time.monotonic, which is past it


def name_of(subject: str | Path) -> str:
    return str(subject).removeprefix(str(REPOSITORY))


class Subject:
    """A bundle and its sessions, loaded once; makes batches as the engine does.

    With its buffers in a device's memory, the CPU's here, it is compared with sentences that are alone in the host's.
    """

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, *, resident: bool = False) -> None:
        self.bundle = bundle
        self.resident = resident
        self._on_host = open_graphs(bundle, "cpu")
        self._graphs = gpu.open_graphs(bundle, "cpu") if resident else self._on_host
        self.texts = [tokenizer.encode(text) for text in synthetic.texts()]
        self.alone = cache(self._alone)

    def new_graphs(self) -> Graphs | None:
        """For an engine, which closes them; None: it opens its own."""
        return gpu.open_graphs(self.bundle, "cpu") if self.resident else None

    def batch(self, mailbox: Mailbox, metrics: Metrics, slots: int) -> OpenBatch:
        return OpenBatch(self.bundle.manifest, self._graphs, mailbox, metrics, slots=slots)

    def source(self, drawn: int | Sequence[int]) -> tuple[int, ...]:
        """A text of the test data by its number, or any ids."""
        manifest = self.bundle.manifest
        ids = self.texts[drawn] if isinstance(drawn, int) else [token % manifest.vocabulary_size for token in drawn]
        return (*ids, manifest.eos_id)

    def _alone(
        self,
        source: tuple[int, ...],
        start_ids: tuple[int, ...] = (),
        sampling: Sampling | None = None,
        scored_ids: tuple[int, ...] = (),
        tokens: int = LIMIT,
    ) -> Trace:
        limit = min(tokens, LIMIT - len(start_ids[1:]))
        return decode_alone(self.bundle.manifest, self._on_host, source, limit, start_ids, sampling, scored_ids)

    def begun(self, segment: Decode, given_ids: tuple[int, ...]) -> tuple[int, ...]:
        """Start ids that have the same effect as tokens that are given."""
        return (
            (*(segment.start_ids or (self.bundle.manifest.start_id,)), *given_ids) if given_ids else segment.start_ids
        )

    def searched_alone(self, segment: Decode) -> Decode:
        """What a beam search gives for a sentence with nothing beside it."""
        manifest, decoding = self.bundle.manifest, segment.decoding
        alone = Decode(
            segment.source_ids,
            segment.max_target_tokens,
            decoding=decoding,
            start_ids=segment.start_ids,
            prefix_ids=segment.prefix_ids,
            constraints=segment.constraints,
        )
        drive(Runner(manifest, *self._on_host, decoding.beam_size), [[alone]])
        return alone


@pytest.fixture(
    scope="session",
    params=[{}, synthetic_model.RECURRENT, synthetic_model.RECURRENT | {"listed": True}],
    ids=["attention", "recurrence", "shortlist"],
)
def exact_checkpoint(request: pytest.FixtureRequest) -> Path:
    return synthetic_model.make_checkpoint(**request.param)


@pytest.fixture(scope="session")
def exact(exact_checkpoint: Path) -> Synthetic:
    return synthetic_model.make_bundle(exact_checkpoint, "fp32")


@pytest.fixture(scope="session")
def exact_subject(exact: Synthetic) -> Subject:
    return Subject(exact.bundle, exact.tokenizer)


@pytest.fixture(scope="session")
def fp32_subject(fp32: Synthetic) -> Subject:
    return Subject(fp32.bundle, fp32.tokenizer)


@pytest.fixture(scope="session")
def recurrent() -> Synthetic:
    return synthetic_model.make_bundle(synthetic_model.make_checkpoint(**synthetic_model.RECURRENT), "int8")


@pytest.fixture(scope="session")
def listed() -> Synthetic:
    """A model that chooses from each segment's own candidates."""
    checkpoint = synthetic_model.make_checkpoint(listed=True, **synthetic_model.RECURRENT)
    return synthetic_model.make_bundle(checkpoint, "int8")


@pytest.fixture(scope="session", params=SUBJECTS, ids=name_of)
def subject(request: pytest.FixtureRequest) -> Subject:
    """Each synthetic precision, also as on a GPU, and each bundle that comes with the repository."""
    if isinstance(request.param, Path):
        return Subject(Bundle.open(request.param), Tokenizer.open(request.param))
    precision, *kind = request.param.split()
    synthetic: Synthetic = request.getfixturevalue(precision)
    return Subject(synthetic.bundle, synthetic.tokenizer, resident=bool(kind))


@pytest.fixture(scope="session")
def in_pytorch(exact: Synthetic, exact_checkpoint: Path) -> Callable[[tuple[int, ...]], synthetic_model.Expected]:
    def decode(source: tuple[int, ...]) -> synthetic_model.Expected:
        listed = synthetic_model.candidates(exact_checkpoint, source)
        return synthetic_model.decode_alone(exact.model, source, listed)

    return cache(decode)


class Visit(NamedTuple):
    """One segment's part in a plan."""

    source: int | list[int]
    limit: int
    start_ids: tuple[int, ...]
    arrives: int  # before this step
    stays: int | None  # steps until it is cancelled; None: it is not
    wants_deltas: bool
    asks: bool  # for its log-probability
    beam_size: int
    prefix_ids: tuple[int, ...]
    sampling: Sampling | None
    scored_ids: tuple[int, ...]  # without the end-of-sentence id; (): its translation is to be found
    terms: tuple[Term, ...]  # that a search is for
    expired: bool


class Plan(NamedTuple):
    """Who comes and goes when, and whose turn it is."""

    slots: int
    batches: int
    visits: list[Visit]
    turns: list[int]

    def decoding(self, visit: Visit) -> Decoding:
        """The options of a visit; a beam is no wider than there are slots, and what is drawn or given has none."""
        if visit.scored_ids:
            return SCORING
        if visit.sampling is not None:
            return Decoding.of(log_probability=visit.asks, sampling=visit.sampling)
        size = min(visit.beam_size, self.slots)
        return Decoding(wants_log_probability=visit.asks, beam_size=size, alternatives=size if size > 1 else 0)


sources = st.integers(0, 15) | st.lists(st.integers(0, 10_000), max_size=synthetic.MAX_SOURCE_TOKENS - 1)
visits = st.builds(
    Visit,
    source=sources,
    limit=st.just(LIMIT) | st.integers(1, LIMIT),
    start_ids=st.sampled_from([(), (), (1,), (7,), (1, 9), (4, 9, 5, 9)]),
    arrives=st.integers(0, 4) | st.integers(0, 30),
    stays=st.none() | st.none() | st.integers(0, 30),
    wants_deltas=st.booleans(),
    asks=st.booleans(),
    beam_size=st.sampled_from([1, 1, 1, 2, 3, 4]),
    prefix_ids=st.sampled_from([(), (), (7,), (9, 5, 11)]),
    sampling=st.sampled_from([None] * 4 + [Sampling(1, temperature=3.0), Sampling(2, top_k=5), Sampling(3, top_p=0.9)]),
    scored_ids=st.sampled_from([()] * 6 + [(7,), (9, 5, 11, 5, 5)]),
    terms=st.sampled_from([(), (), (((8, 5),),), (((12,), (10, 7, 7)), ((14,),), ((14,),))]),
    expired=st.sampled_from([False] * 9 + [True]),
)
plans = st.builds(
    Plan,
    slots=st.integers(1, 8),
    batches=st.integers(1, 3),
    visits=st.lists(visits, min_size=1, max_size=14),
    turns=st.lists(st.integers(0, 2), max_size=30),
)


class Rehearsal:
    """Plays a plan step by step, in one thread, and checks the books after every step."""

    def __init__(self, subject: Subject, plan: Plan) -> None:
        self.subject = subject
        self.plan = plan
        self.metrics = Metrics()
        self.mailbox = Mailbox(UNBOUNDED)
        self.opened = [subject.batch(self.mailbox, self.metrics, plan.slots) for _ in range(plan.batches)]
        self.batches = [opened.batch for opened in self.opened]
        self.told: dict[Decode, list[int]] = {}
        self.segments = [self._segment(visit) for visit in plan.visits]

    def _segment(self, visit: Visit) -> Decode:
        scored_ids = (*visit.scored_ids, self.subject.bundle.manifest.eos_id) if visit.scored_ids else ()
        decoding = self.plan.decoding(visit)
        is_constrained = visit.terms and decoding.beam_size > 1
        segment = Decode(
            list(self.subject.source(visit.source)),
            min(max(visit.limit, len(visit.prefix_ids) + 1, len(scored_ids)), LIMIT - len(visit.start_ids[1:])),
            start_ids=visit.start_ids,
            prefix_ids=() if scored_ids else visit.prefix_ids,
            scored_ids=scored_ids,
            deadline_s=EXPIRED_S if visit.expired else None,
            wants_deltas=visit.wants_deltas,
            decoding=decoding,
            constraints=Constraints(visit.terms, BEGINS_WORD, len(visit.terms) * 2.0) if is_constrained else None,
            on_progress=lambda segment: self.told[segment].append(len(segment.target_ids)),
        )
        self.told[segment] = []
        return segment

    def play(self) -> None:
        # Every step of a batch that holds a segment decodes a token of it: no plan takes longer.
        steps = 61 + self.plan.batches * sum(visit.limit + len(visit.start_ids) + 6 for visit in self.plan.visits)
        for step in range(steps):
            self._come_and_go(step)
            turns = self.plan.turns
            opened = self.opened[(turns[step] if step < len(turns) else step) % len(self.opened)]
            opened.batch.step(wait=False)
            for each in self.batches:
                assert violations(snapshot_of(each)) == []
            self._compare_rows(opened)
            if step > 60 and not self.mailbox.unfinished:
                break
        self._check_ends()

    def _come_and_go(self, step: int) -> None:
        for visit, segment in zip(self.plan.visits, self.segments, strict=True):
            if visit.arrives == step:
                self.mailbox.submit([segment])
            if visit.stays is not None and visit.arrives + visit.stays == step:
                already_told = len(self.told[segment])
                self.mailbox.cancel([segment])
                segment.on_progress = lambda segment, told=already_told: pytest.fail("told after it was cancelled")

    def _compare_rows(self, opened: OpenBatch) -> None:
        """A row holds, bit for bit, what it would hold if its sentence were alone."""
        caches, memory = opened.rows()
        snapshot = snapshot_of(opened.batch)
        for slot, (segment, length) in enumerate(zip(snapshot.active, snapshot.lengths, strict=True)):
            # As if the hypothesis of a search had been given.
            given_ids = tuple(snapshot.decoded[slot]) if segment.slots > 1 else segment.prefix_ids
            start_ids = self.subject.begun(segment, given_ids)
            asked = segment.decoding.sampling, segment.scored_ids
            tokens = 1 if segment.slots > 1 else LIMIT  # of a hypothesis, only what is given is compared
            alone = self.subject.alone(tuple(segment.source_ids), start_ids, *asked, tokens)
            np.testing.assert_array_equal(caches[:, :, slot, :, :length], alone.caches[..., :length, :])
            np.testing.assert_array_equal(memory[:, :, slot, :, : len(segment.source_ids)], alone.memory)

    def _check_ends(self) -> None:
        assert self.mailbox.unfinished == len(self.mailbox.waiting) == self.mailbox.waiting.load.source_tokens == 0
        assert [len(batch.runner.scheduler.active) for batch in self.batches] == [0] * len(self.batches)
        assert self._metric("slots_active") == 0
        # A search that is cut short counts none: what it would have given is not known.
        ended = [each for each in self.segments if each.slots == 1 or each.finish_reason in LASTING]
        assert self._metric("target_tokens_total") == sum(len(segment.target_ids) for segment in ended)
        for visit, segment in zip(self.plan.visits, self.segments, strict=True):
            assert segment.finished
            if segment.status is DecodeStatus.CANCELLED:
                assert visit.stays is not None
            elif visit.expired:
                assert isinstance(segment.error, DeadlineExceededError)
            elif not segment.cancel_requested and segment.slots > 1:
                told = self.told[segment]
                assert told == sorted(told)
                assert told[-1] == len(segment.target_ids)
            elif not segment.cancel_requested:
                tokens = list(range(1, len(segment.target_ids) + 1)) if visit.wants_deltas else []
                last = [len(segment.target_ids)]
                ended_without_token = segment.finish_reason is FinishReason.EOS or segment.error is not None
                assert self.told[segment] == (tokens + last if ended_without_token else tokens or last)

    def _metric(self, name: str) -> float | None:
        return self.metrics.total(name)


@ON_GRAPHS
@given(plan=plans)
def test_a_batch_decodes_what_plain_pytorch_decodes_alone(exact_subject, in_pytorch, plan: Plan) -> None:
    plain = {"start_ids": (), "beam_size": 1, "prefix_ids": (), "sampling": None, "scored_ids": (), "terms": ()}
    plan = plan._replace(visits=[visit._replace(**plain) for visit in plan.visits])
    rehearsal = Rehearsal(exact_subject, plan)
    rehearsal.play()
    for segment in rehearsal.segments:
        expected = in_pytorch(tuple(segment.source_ids))
        if segment.finish_reason in (FinishReason.EOS, FinishReason.LENGTH):
            assert expected.agrees(segment.target_ids, segment.max_target_tokens)
        else:
            assert expected.agrees(segment.target_ids, len(segment.target_ids))


@ON_GRAPHS
@given(plan=plans)
def test_a_batch_decodes_what_the_engine_decodes_alone(subject, plan: Plan) -> None:
    rehearsal = Rehearsal(subject, plan)
    rehearsal.play()
    for segment in rehearsal.segments:
        check_like_alone(subject, segment)


def check_search_like_alone(subject: Subject, segment: Decode) -> None:
    alone = subject.searched_alone(segment)
    if segment.finish_reason in (FinishReason.EOS, FinishReason.LENGTH):
        assert (segment.target_ids, segment.log_probability) == (alone.target_ids, alone.log_probability)
        assert (segment.hypotheses, segment.finish_reason) == (alone.hypotheses, alone.finish_reason)
        first = segment.hypotheses[0]
        assert (list(first.target_ids), first.log_probability) == (segment.target_ids, segment.log_probability)
        if segment.constraints is not None and segment.finish_reason is FinishReason.EOS:
            terms = segment.constraints.terms
            ended = [each for each in segment.hypotheses if each.finish_reason is FinishReason.EOS]
            lacking = [each for each in ended if not holds(tuple(each.target_ids), terms, BEGINS_WORD)]
            assert len(lacking) <= 1  # one may be told where the terms cost too much
    else:
        assert segment.target_ids == alone.target_ids[: len(segment.target_ids)]


def check_like_alone(subject: Subject, segment: Decode) -> None:
    if segment.slots > 1:
        check_search_like_alone(subject, segment)
        return
    start_ids = subject.begun(segment, segment.prefix_ids)
    asked = segment.decoding.sampling, segment.scored_ids
    alone, log_probabilities, *_ = subject.alone(tuple(segment.source_ids), start_ids, *asked)
    alone = [*segment.prefix_ids, *alone]
    expected = log_probabilities[segment.decoded_tokens] if segment.decoding.wants_log_probability else 0.0
    assert segment.log_probability == expected
    assert len(segment.token_log_probabilities) == (segment.decoded_tokens if segment.scored_ids else 0)
    if segment.finish_reason is FinishReason.EOS:
        assert segment.target_ids == alone
    elif segment.finish_reason is FinishReason.LENGTH:
        assert segment.target_ids == alone[: segment.max_target_tokens]
        assert len(segment.target_ids) == segment.max_target_tokens
    else:
        assert segment.target_ids == alone[: len(segment.target_ids)]


def test_the_synthetic_sentences_end_at_different_steps(fp32_subject) -> None:
    """Without this, the tests above would prove little."""
    lengths = {len(fp32_subject.alone(fp32_subject.source(text)).target_ids) for text in range(16)}
    assert len(lengths) >= 6
    assert LIMIT in lengths


def test_the_draws_of_synthetic_sentences_differ(fp32_subject) -> None:
    """Without this, the tests above would prove little of them."""
    source = fp32_subject.source(0)
    drawn = {tuple(fp32_subject.alone(source, (), Sampling(seed, temperature=3.0)).target_ids) for seed in range(8)}
    assert len(drawn) == 8


class PlantedError(Exception):
    """What a poisonous segment makes a run raise."""


@contextmanager
def poisoned(rehearsal: Rehearsal, after_tokens: dict[Decode, int | None]) -> Iterator[None]:
    """Makes every run fail that includes a segment which has so many tokens; None: the encoder's runs."""
    encoders, steps = (EncoderSession, DeviceEncoder), (DecoderStep, DeviceStep)
    encode, run = {kind: kind.encode for kind in encoders}, {kind: kind.run for kind in steps}
    sources = {id(segment.source_ids) for segment, tokens in after_tokens.items() if tokens is None}

    def poisoned_encode(encoder: EncoderSession | DeviceEncoder, batch: Sequence[Sequence[int]]) -> object:
        memories = encode[type(encoder)](encoder, batch)
        if any(id(source) in sources for source in batch):
            raise PlantedError
        return memories

    def poisoned_run(step: DecoderStep | DeviceStep, rows: int, start: int = 0) -> object:
        ids = run[type(step)](step, rows, start)
        for snapshot in [snapshot_of(opened.batch) for opened in rehearsal.opened if opened.step is step]:
            for slot, segment in enumerate(snapshot.active[start : start + rows], start):
                probe = rows == 1 and snapshot.memory_lengths[slot] != len(segment.source_ids)
                if after_tokens.get(segment) == len(snapshot.decoded[slot]) and not probe:
                    raise PlantedError
        return ids

    with pytest.MonkeyPatch.context() as patch:
        for kind in encoders:
            patch.setattr(kind, "encode", poisoned_encode)
        for kind in steps:
            patch.setattr(kind, "run", poisoned_run)
        yield


@pytest.mark.parametrize("subject", ONE_OF_EACH, indirect=True, ids=name_of)
@ON_GRAPHS
@given(plan=plans, poison=st.dictionaries(st.integers(0, 13), st.none() | st.integers(0, 4)))
def test_a_poisonous_segment_fails_alone(subject, plan: Plan, poison: dict[int, int | None]) -> None:
    # Two tokens at least: one token alone is the source of what proves the engine sound.
    plan = plan._replace(visits=[visit._replace(source=visit.source or 0) for visit in plan.visits])
    rehearsal = Rehearsal(subject, plan)
    poisonous = {rehearsal.segments[visit]: tokens for visit, tokens in poison.items() if visit < len(plan.visits)}
    with poisoned(rehearsal, poisonous):
        rehearsal.play()
    for segment in rehearsal.segments:
        check_like_alone(subject, segment)
        if isinstance(segment.error, InternalError):
            assert segment.slots > 1 or len(segment.target_ids) == (poisonous[segment] or 0)
        elif segment in poisonous and segment.finish_reason not in (FinishReason.CANCELLED, FinishReason.DEADLINE):
            tokens = poisonous[segment]
            assert tokens is not None
            assert len(segment.target_ids) <= tokens  # it ended before it could do harm


def make_engine(subject: Subject, mailbox: Mailbox, threads: int, slots: int) -> Engine:
    return Engine(
        subject.bundle, mailbox, Metrics(), device="cpu", threads=threads, slots=slots, graphs=subject.new_graphs()
    )


class Caller(NamedTuple):
    """One caller of a running engine: waits a few rounds of the event loop, submits, perhaps leaves."""

    rounds: int
    sources: list[int | list[int]]
    limit: int
    asks: bool  # for log-probabilities
    leaves_after: int | None  # words about its segments; 0: right after submission; None: it stays


callers = st.builds(
    Caller,
    rounds=st.integers(0, 20),
    sources=st.lists(sources, min_size=1, max_size=6),
    limit=st.just(LIMIT) | st.integers(1, LIMIT),
    asks=st.booleans(),
    leaves_after=st.none() | st.none() | st.integers(0, 40),
)


class Conversation:
    """Callers on an event loop, and a running engine of two threads."""

    def __init__(self, subject: Subject, slots: int) -> None:
        self.subject = subject
        self.mailbox = Mailbox(UNBOUNDED)
        self.engine = make_engine(subject, self.mailbox, threads=2, slots=slots)
        self.segments: list[Decode] = []

    async def hold(self, callers: list[Caller]) -> None:
        loop = asyncio.get_running_loop()
        faults: list[dict] = []
        loop.set_exception_handler(lambda _, context: faults.append(context))
        self.mailbox.bind(loop)
        self.engine.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*map(self._call, callers))
            self.mailbox.close()
            assert await asyncio.to_thread(wait_idle, self.mailbox, PATIENCE_S)
            assert self.mailbox.unfinished == 0
            assert not faults
        finally:
            await asyncio.to_thread(self.engine.stop)
        assert self.engine.ended.result(timeout=PATIENCE_S) is None
        for batch in self.engine.batches:
            assert violations(snapshot_of(batch)) == []
            assert len(batch.runner.scheduler.active) == 0

    async def _call(self, caller: Caller) -> None:
        for _ in range(caller.rounds):
            await asyncio.sleep(0)
        words: asyncio.Queue[Decode] = asyncio.Queue()
        left = False

        def note(segment: Decode) -> None:
            # An end may show before the word about it comes, but nothing is said of what was cancelled.
            assert not left or segment not in waiting
            words.put_nowait(segment)

        segments = [
            Decode(
                list(self.subject.source(source)),
                caller.limit,
                wants_deltas=True,
                on_progress=note,
                decoding=Decoding(wants_log_probability=caller.asks),
            )
            for source in caller.sources
        ]
        waiting, heard = set(segments), 0
        self.segments += segments
        self.mailbox.submit(segments)
        while waiting and heard != caller.leaves_after:
            segment = await words.get()
            heard += 1
            if segment.finished:
                waiting.discard(segment)
        left = True
        self.mailbox.cancel(waiting)


@pytest.mark.parametrize("subject", ONE_OF_EACH, indirect=True, ids=name_of)
@ON_THREADS
@given(slots=st.integers(1, 8), callers=st.lists(callers, min_size=1, max_size=8))
def test_running_threads_decode_what_the_engine_decodes_alone(subject, slots: int, callers: list[Caller]) -> None:
    conversation = Conversation(subject, slots)
    asyncio.run(conversation.hold(callers))
    for segment in conversation.segments:
        assert segment.finished
        assert segment.error is None
        check_like_alone(subject, segment)


def test_offline_decoding_gives_the_same_whatever_the_threads_and_slots(subject) -> None:
    expected = [subject.alone(subject.source(text)).target_ids for text in range(16)]
    for threads, slots in ((1, 3), (2, 4), (1, 32)):
        engine = OfflineEngine(subject.bundle, threads=threads, slots=slots, graphs=subject.new_graphs())
        segments = [Decode(list(subject.source(text)), LIMIT) for text in range(16)]
        engine.decode(segments)
        assert [segment.target_ids for segment in segments] == expected
