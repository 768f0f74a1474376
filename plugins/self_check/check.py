"""A check before a server reports that it serves: each thread decodes sentences together exactly as alone."""

import hashlib
import math
import random
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from dragoman.errors import BundleError
from dragoman.framing import Frame
from plugins.offline.engine import drive, raise_first
from service.decode import Decode, Hypothesis
from service.engine.engine import Engine
from service.engine.runner import Runner
from service.options import Decoding

# Tokens of the golden sentences, short and long; each has another of similar length, to share an encoder run. Two
# tokens are decoded for each: 20 ms for the default model, half a second for a model of over 600 million parameters.
LENGTHS: Final = (3, 4, 29, 30)
TARGET_TOKENS: Final = 2
# For one golden sentence, which is also decoded with beam search.
BEAM_SIZE: Final = 4
_FIRST_ID: Final = 4  # lower ids are special, and stand for no text
# Exact matrix products; fp16 is for GPUs, whose libraries may sum few rows in another order: there only ids count.
_EXACT_PRECISIONS: Final = ("fp32", "int8")
# How far the sum of a token's attention may be from 1: it is a sum of fp32 values.
_SUM_ROUNDING: Final = 1e-3
# Tolerance for an encoder memory, relative to its norm, and for the log-probability of a search: far above the rounding
# of fp16, and far below the change of a memory that attends to padding.
_ROUNDING: Final = 0.05


class Golden(NamedTuple):
    """A sentence, and its decoding mode."""

    source_ids: list[int]
    beam_size: int = 1


class Decoded(NamedTuple):
    """The translation of a sentence.

    Attributes:
        target_ids: the ids of the translation; empty for a search in a precision that is not exact, where rounding can
            decide between equally probable hypotheses.
        log_probability: of the translation, 0 if it is not computed.
        hypotheses: of a search, with every bit of their scores; empty if the precision is not exact.
        scores_sha256: the hash of all logits and all attention, bit for bit; of no data if the precision is not exact.
    """

    target_ids: list[int]
    log_probability: float
    hypotheses: Sequence[Hypothesis]
    scores_sha256: str

    def agrees(self, other: "Decoded") -> bool:
        """Tell whether two results agree, except for rounding of the log-probability; exact values are in the hash."""
        rounded = math.isclose(self.log_probability, other.log_probability, rel_tol=_ROUNDING)
        return rounded and self._replace(log_probability=0.0) == other._replace(log_probability=0.0)


def check(engine: Engine, manifest: Manifest, vocabulary_size: int) -> None:
    """Decode the golden sentences alone, on any thread, and then in a batch, on all threads, each with its own runner.

    Besides the ids, every bit of the scores is compared, since a different score could change the token in another
    sentence, and every bit of the attention, which aligns words. One sentence is also decoded by beam search. Then the
    shortest is encoded beside the longest, so that it is padded. All this also warms up the engine for the first
    caller.

    Args:
        engine: an engine that has not been started.
        vocabulary_size: number of pieces of the source side.

    Raises:
        BundleError: a translation depends on the rest of the batch, the attention is invalid, or a graph fails.
    """
    sources = golden_sources(manifest, vocabulary_size)
    size = min(BEAM_SIZE, *engine.on_each_thread(lambda runner: runner.slots))
    goldens = [*map(Golden, sources), Golden(sources[len(sources) // 2], size)]
    try:
        engine.on_each_thread(Runner.prepare)
        pending, found = deque(enumerate(goldens)), dict[int, Decoded]()
        engine.on_each_thread(lambda runner: _decode_alone(runner, pending, found, manifest))
        alone = [found[number] for number in range(len(goldens))]
        # Each sentence in several slots; some join the batch earlier, and all are together until one leaves.
        company = [goldens[::-1], goldens, goldens[1::2]]
        together = engine.on_each_thread(lambda runner: _decode(runner, company, manifest))
        changes = engine.on_each_thread(lambda runner: _change_by_padding(runner, sources[0], sources[-1]))
    except Exception as error:  # the runtime's exceptions share no base class of its own
        raise BundleError(f"model {manifest.name}: cannot be run: {_line(error)}") from error
    expected = alone[::-1] + alone + alone[1::2]
    for thread, decoded in enumerate(together):
        if not all(map(Decoded.agrees, decoded, expected)):
            raise BundleError(
                f"model {manifest.name}: on thread {thread} a sentence is decoded differently alone and in a batch; "
                "what a caller gets would depend on the others"
            )
    if max(changes) > (0.0 if manifest.precision in _EXACT_PRECISIONS else _ROUNDING):
        raise BundleError(
            f"model {manifest.name}: the encoder reads the padding of a batch: beside a longer sentence, a short one's "
            f"memory changes by {max(changes):.2g} of its length; what a caller gets would depend on the others"
        )


def golden_sources(manifest: Manifest, vocabulary_size: int) -> list[list[int]]:
    """Make ids that look like sentences to the model, the same at every start; they have no meaning."""
    chance = random.Random(LENGTHS[0])
    ids = range(min(_FIRST_ID, vocabulary_size - 1), vocabulary_size)
    lengths = [min(length, manifest.max_source_tokens) for length in LENGTHS]
    return [[*chance.choices(ids, k=length - 1), manifest.eos_id] for length in lengths]


def _change_by_padding(runner: Runner, short: list[int], long: list[int]) -> float:
    """Measure how much a longer neighbour changes a source's encoder memory, relative to its norm."""
    alone, beside = np.asarray(runner.encode([short])[0]), np.asarray(runner.encode([short, long])[0])
    if np.array_equal(alone, beside):
        return 0.0
    whole = alone.astype(np.float32)
    change = np.linalg.norm(beside.astype(np.float32) - whole) / np.linalg.norm(whole)
    return float(change) if np.isfinite(change) else np.inf


def _decode_alone(
    runner: Runner, pending: deque[tuple[int, Golden]], found: dict[int, Decoded], manifest: Manifest
) -> None:
    """Decode sentences one after another, until the threads have taken all of them."""
    while True:
        try:
            number, golden = pending.popleft()
        except IndexError:
            return
        [found[number]] = _decode(runner, [[golden]], manifest)


def _decode(runner: Runner, waves: Sequence[Sequence[Golden]], manifest: Manifest) -> list[Decoded]:
    """Decode sentences in waves that join one after another; returns all results, in order."""
    decodes = [[_new_decode(manifest, golden) for golden in wave] for wave in waves]
    is_exact = manifest.precision in _EXACT_PRECISIONS
    hashes: dict[Decode, Any] = defaultdict(hashlib.sha256)

    def watch(decode: Decode, logits: NDArray[np.floating]) -> None:
        if is_exact and decode.slots == 1:  # the slots of a search are in any order
            hashes[decode].update(logits)

    drive(runner, decodes, watch)
    flat = [decode for wave in decodes for decode in wave]
    raise_first(flat)
    for decode in flat:
        _check_attention(decode)
        if is_exact:
            for weights in decode.attention:
                hashes[decode].update(weights)
    return [
        Decoded(
            decode.target_ids if is_exact or decode.slots == 1 else [],
            decode.log_probability,
            # Without arrays, since == of an array gives no single result.
            [found._replace(attention=()) for found in decode.hypotheses] if is_exact else (),
            hashes[decode].hexdigest(),
        )
        for decode in flat
    ]


def _check_attention(decode: Decode) -> None:
    """Raise ValueError if a token's attention is no distribution over the source tokens."""
    for weights in decode.attention:
        total = float(weights.sum())
        if weights.shape != (len(decode.source_ids),) or not abs(total - 1.0) <= _SUM_ROUNDING:  # true for NaN as well
            raise ValueError(
                f"the attention of a token must be {len(decode.source_ids)} shares that add up to 1, "
                f"is {weights.shape[0]} that add up to {total:g}"
            )


def _new_decode(manifest: Manifest, golden: Golden) -> Decode:
    source, size = golden
    targets = manifest.languages.targets
    target = targets[len(source) % len(targets)]  # so that a batch has several
    return Decode(
        source,
        min(TARGET_TOKENS, manifest.max_target_tokens),
        start_ids=Frame.of(manifest.languages, manifest, target=target).start_ids,
        decoding=Decoding(beam_size=size, alternatives=size if size > 1 else 0, wants_attention=True),
    )


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
