"""The same translation, whoever is in the batch: logits, keys and values of a sentence are the same bits anywhere.

The graphs and the slot table are driven here without an engine, so that any schedule is tried, those too that no
engine would choose. `test_engine.py` has the same promise for the schedules that the engine does choose.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dragoman.bundle import Bundle
from dragoman.tokenizer import Tokenizer
from model.corpus import read_corpus
from service.engine.encoder_cache import CachingEncoder, EncoderMemoryCache
from service.runtime import slots
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.slots import DecoderStep, SlotTable
from service.telemetry.metrics import Metrics
from tests import default_model, synthetic, synthetic_model
from tests.engine_harness import look_up_or_encode
from tests.examples import ON_GRAPHS, ON_THREADS

STEPS = 20
# Beyond the 32 slots of a server by default, and beyond every block of rows that a product is cut into.
MOST_ROWS = 70

# Depth, widths that fill no vector register or several blocks, each norm, activation and kind of position.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "narrow": {
        "d_model": 24, "heads": 3, "d_ff": 40, "encoder_layers": 2, "decoder_layers": 1,
        "norm": "pre", "activation": "silu", "positions": "relative", "embedding_norm": True, "attention_head_dim": 16,
        "norm_kind": "rms", "gated": True, "bias": False, "scale_attention": False,
        "relative_buckets": 8, "relative_max_distance": 12,
    },
    "deep": {
        "d_model": 48, "heads": 2, "d_ff": 80, "encoder_layers": 3, "decoder_layers": 3,
        "norm": "post", "activation": "gelu", "positions": "learned", "share_embeddings": False,
    },
    "wide": {
        "d_model": 320, "heads": 5, "d_ff": 1400, "encoder_layers": 1, "decoder_layers": 1,
        "norm": "post", "activation": "relu", "positions": "sinusoidal_halves",
    },
    "recurrent": {
        "d_model": 40, "heads": 5, "d_ff": 72, "encoder_layers": 1, "decoder_layers": 2,
        "norm": "post", "activation": "relu", "positions": "sinusoidal_halves", "decoder_cell": "ssru",
    },
}  # fmt: skip


class Trace(NamedTuple):
    """What one sentence computes when nobody is beside it.

    logits: [steps, vocabulary]; caches, memory: [layers, key and value, heads, tokens, head_dim].
    """

    logits: NDArray[np.generic]
    caches: NDArray[np.generic]
    memory: NDArray[np.generic]


class Subject:
    """The sessions of a bundle, and sentences of many lengths for it."""

    def __init__(self, bundle: Bundle, texts: Iterable[str]) -> None:
        self.manifest = bundle.manifest
        self.encoder = EncoderSession(bundle)
        self.decoder = DecoderSession(bundle)
        tokenizer, eos = Tokenizer.open(bundle.path), bundle.manifest.eos_id
        random = np.random.default_rng(0)
        longest = bundle.manifest.max_source_tokens
        noise = [random.integers(0, bundle.manifest.vocabulary_size, length).tolist() for length in (1, 2, longest - 1)]
        self.sources = [[*ids, eos] for ids in [[], *noise, *(tokenizer.encode(text) for text in texts)]]
        self.alone = cache(self._alone)
        self.encoded_alone = cache(lambda source: self.encoder.encode([self.sources[source]])[0])

    def _alone(self, source: int) -> Trace:
        table = Table(self, slots=1)
        table.join([source])
        logits = []
        for _ in range(STEPS):
            table.decoder_step.run(1)
            logits.append(table.slots.logits[0].copy())
            table.slots.commit(1)
        length = len(self.sources[source])
        return Trace(np.stack(logits), table.caches(0, STEPS).copy(), table.memory(0, length).copy())


class Table:
    """Slots over a subject; every step is compared, row by row, with what each sentence computes alone."""

    def __init__(self, subject: Subject, slots: int, **limits: int) -> None:
        self.subject = subject
        self.slots = SlotTable(subject.manifest.model_copy(update=limits), slots)
        self.decoder_step = DecoderStep(subject.decoder.session, subject.decoder.search, self.slots)
        self.rows: list[int] = []  # the source in each slot

    def join(self, sources: Sequence[int]) -> None:
        """Encode sources together, padded to the longest, into the next slots."""
        memories = self.subject.encoder.encode([self.subject.sources[source] for source in sources])
        for source, memory in zip(sources, memories, strict=True):
            self.slots.fill(len(self.rows), memory)
            self.rows.append(source)

    def leave(self, row: int) -> None:
        """Free a slot; the last row moves into it."""
        self.slots.move(len(self.rows) - 1, row)
        self.rows[row] = self.rows[-1]
        self.rows.pop()

    def step(self) -> None:
        """Decode one token of every row."""
        if self.rows:
            self.compare_logits(len(self.rows))
            self.slots.commit(len(self.rows))

    def compare_logits(self, rows: int, start: int = 0) -> None:
        """Run some rows, without a commit."""
        ids = self.decoder_step.run(rows, start)
        for row in range(start, start + rows):
            expected = self.subject.alone(self.rows[row]).logits[self.slots.rows.lengths[row]]
            assert_same_bits(self.slots.logits[row], expected, f"logits, row {row} of {rows} from {start}")
            assert ids[row - start] == expected.argmax()

    def compare_buffers(self) -> None:
        for row, source in enumerate(self.rows):
            alone, length = self.subject.alone(source), int(self.slots.rows.lengths[row])
            where = f"row {row} of {len(self.rows)}"
            assert_same_bits(self.caches(row, length), alone.caches[..., :length, :], f"caches, {where}")
            assert_same_bits(self.memory(row, len(self.subject.sources[source])), alone.memory, f"memory, {where}")

    def caches(self, row: int, length: int) -> NDArray[np.generic]:
        return self.slots.caches[:, :, row, :, :length]

    def memory(self, row: int, length: int) -> NDArray[np.generic]:
        return self.slots.memory[:, :, row, :, :length]


@pytest.fixture(scope="module", autouse=True)
def rows_that_often_move_together() -> Iterator[None]:
    """A server's rows do after 1,024 segments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "_SEGMENTS_OF_A_LAYOUT", 3)
        yield


def assert_same_bits(actual: NDArray[np.generic], expected: NDArray[np.generic], what: str) -> None:
    """Stricter than equality: minus zero is not zero."""
    if actual.tobytes() != expected.tobytes():
        differences = np.abs(actual.astype(float) - expected.astype(float))
        pytest.fail(
            f"{what}: {np.count_nonzero(differences)} of {differences.size} differ by up to {differences.max()}"
        )


@pytest.fixture(
    scope="module",
    params=["default fp32", "default int8", "narrow int8", "deep fp32", "wide fp32", "recurrent int8"],
)
def subject(request: pytest.FixtureRequest) -> Subject:
    """The default model and the random ones, in one precision."""
    model, precision = request.param.split()
    if model != "default":
        checkpoint = synthetic_model.make_checkpoint(**ARCHITECTURES[model])
        return Subject(synthetic_model.make_bundle(checkpoint, precision).bundle, synthetic.texts())
    bundle = default_model.fp32() if precision == "fp32" else Bundle.open(default_model.BUNDLE)
    return Subject(bundle, sorted(read_corpus(synthetic.CORPUS).sources, key=len)[::40])


class Visit(NamedTuple):
    """One sentence's part in a plan."""

    source: int
    arrives: int  # before this step
    company: int  # of those that arrive at one step, the ones with one number are encoded together
    stays: int  # steps


Plan = list[Visit]
visits = st.builds(
    Visit,
    source=st.integers(0, 100),
    arrives=st.integers(0, 3) | st.integers(0, STEPS),
    company=st.integers(0, 1),
    stays=st.integers(1, STEPS),
)
plans = st.lists(visits, min_size=1, max_size=8) | st.lists(visits, min_size=30, max_size=50)


def play(subject: Subject, plan: Plan) -> None:
    table = Table(subject, slots=len(plan))
    leaves: list[int] = []  # step after which the sentence in each slot goes
    for step in range(2 * STEPS):
        groups = defaultdict(list)
        for visit in plan:
            if visit.arrives == step:
                groups[visit.company].append(visit)
        for group in groups.values():
            table.join([visit.source % len(subject.sources) for visit in group])
            leaves += [step + visit.stays for visit in group]
        table.step()
        for row in reversed(range(len(leaves))):
            if leaves[row] == step + 1:
                table.leave(row)
                leaves[row] = leaves[-1]
                leaves.pop()
        table.compare_buffers()


@ON_GRAPHS
@given(plan=plans)
def test_a_sentence_computes_the_same_in_any_company(subject: Subject, plan: Plan) -> None:
    play(subject, plan)


@ON_THREADS
@given(one=plans, other=plans)
def test_a_sentence_computes_the_same_on_two_threads(subject: Subject, one: Plan, other: Plan) -> None:
    with ThreadPoolExecutor(2) as pool:
        for played in [pool.submit(play, subject, plan) for plan in (one, other)]:
            played.result()


def test_a_row_computes_the_same_among_any_number_of_rows(subject: Subject) -> None:
    """A product of one row, or of few, may take other code than one of many."""
    table = Table(subject, slots=MOST_ROWS)
    for row in range(MOST_ROWS):
        table.join([row % len(subject.sources)])
        if row % 4 == 3:  # rows of many ages
            table.step()
    for rows in range(1, MOST_ROWS + 1):
        table.compare_logits(rows)
    for rows in range(MOST_ROWS, 0, -1):
        table.compare_logits(rows, start=MOST_ROWS - rows)


def test_a_sentence_is_encoded_the_same_however_padded(subject: Subject) -> None:
    longest = subject.manifest.max_source_tokens
    for source, ids in enumerate(subject.sources):
        for size in range(len(ids), longest + 1, 1 if len(ids) < 3 else 25):
            (memory, _) = subject.encoder.encode([ids, [subject.manifest.eos_id] * size])
            assert_same_bits(memory, subject.encoded_alone(source), f"source {source}, padded to {size}")


def test_a_sentence_is_encoded_the_same_among_any_number(subject: Subject) -> None:
    for count in (*range(1, 10), 16, 17, 31, 33, 64):
        company = [(count + row) % len(subject.sources) for row in range(count)]
        memories = subject.encoder.encode([subject.sources[source] for source in company])
        for source, memory in zip(company, memories, strict=True):
            assert_same_bits(memory, subject.encoded_alone(source), f"source {source}, among {count}")


def test_a_sentence_is_encoded_the_same_fresh_or_remembered(subject: Subject) -> None:
    metrics = Metrics()
    kept = EncoderMemoryCache(2**30, metrics.of("m"))
    encoder = CachingEncoder(subject.encoder.encode, kept, metrics.of("m"))
    everything = list(range(len(subject.sources)))
    for company in (everything[::2], everything, everything[::-1]):
        memories = look_up_or_encode(encoder, [subject.sources[source] for source in company])
        for source, memory in zip(company, memories, strict=True):
            assert_same_bits(memory, subject.encoded_alone(source), f"source {source}")
    distinct = len({tuple(ids) for ids in subject.sources})
    assert metrics.total("encoder_memory_cache_misses_total") == distinct


@pytest.mark.parametrize("capacity", [STEPS, 21])
def test_a_sentence_computes_the_same_where_the_limits_leave_no_room(subject: Subject, capacity: int) -> None:
    sources = [row for row, ids in enumerate(subject.sources) if len(ids) <= capacity]
    table = Table(subject, len(sources), max_target_tokens=capacity, max_source_tokens=capacity)
    table.join(sources)
    for _ in range(STEPS):
        table.step()
    table.compare_buffers()


def test_the_sentences_differ(subject: Subject) -> None:
    """Without this, the tests above would prove little."""
    lengths = {len(ids) for ids in subject.sources}
    assert 1 in lengths
    assert len(lengths) >= 8
    for source in range(1, len(subject.sources)):
        one, other = subject.alone(source), subject.alone(source - 1)
        assert (one.logits != other.logits).any(axis=1).all()
    chosen = [tuple(subject.alone(source).logits.argmax(axis=1)) for source in range(len(subject.sources))]
    assert len(set(chosen)) >= len(chosen) // 2
