"""Before a server says that it serves: each thread decodes a few sentences together as it decodes each alone."""

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
from plugins.offline.engine import drive
from service.decode import Decode, Hypothesis, raise_first
from service.engine.engine import Engine
from service.engine.runner import Runner
from service.options import Decoding

# Tokens of the golden sentences, short and long, each with another of like length to share a run of the encoder, and
# what is decoded of each: some 20 ms for the default model, half a second for one of 600 million parameters and more.
LENGTHS: Final = (3, 4, 29, 30)
TARGET_TOKENS: Final = 2
# Of one golden sentence, which is searched too.
BEAM_SIZE: Final = 4
_FIRST_ID: Final = 4  # what comes before it stands for no piece of text
# Of the products; fp16 is for GPUs, whose libraries may add up few rows in another order than many: there, ids count.
_EXACT_PRECISIONS: Final = ("fp32", "int8")
# By how much the attention of a token may miss 1: it is a sum of fp32 shares.
_SUM_ROUNDING: Final = 1e-3
# Of an encoder memory, as a share of its length as a vector, and of the log-probability that a search finds: far above
# the rounding of fp16, and far below what a source becomes that attends the padding beside it.
_ROUNDING: Final = 0.05


class Golden(NamedTuple):
    """A sentence, and how it is decoded."""

    source_ids: list[int]
    beam_size: int = 1


class Decoded(NamedTuple):
    """The translation of a sentence.

    Attributes:
        target_ids: of its translation; none of a search where the precision is not exact: two hypotheses may be equally
            probable but for rounding.
        log_probability: of its translation, 0 where it is not computed.
        hypotheses: of a search, with every bit of their scores; none where the precision is not exact.
        scores_sha256: of all that they were chosen from, and of the attention, bit for bit; of nothing where the
            precision is not exact.
    """

    target_ids: list[int]
    log_probability: float
    hypotheses: Sequence[Hypothesis]
    scores_sha256: str

    def agrees(self, other: "Decoded") -> bool:
        """Tell whether both are the same, but for the rounding of a log-probability; exact ones are in the hash."""
        rounded = math.isclose(self.log_probability, other.log_probability, rel_tol=_ROUNDING)
        return rounded and self._replace(log_probability=0.0) == other._replace(log_probability=0.0)


def check(engine: Engine, manifest: Manifest, vocabulary_size: int) -> None:
    """Decode the golden sentences alone, each on any thread, and then in company, on all threads, each with its runner.

    Not their tokens alone are compared but every bit of the scores, which in some other sentence would choose another
    token, and of the attention, which aligns words. One of them is searched as well, by a beam. Then the shortest is
    encoded beside the longest, which pads it. All this also spares the first caller the first times of everything.

    Args:
        engine: which has not been started.
        vocabulary_size: pieces of the source side.

    Raises:
        BundleError: a translation depends on who is in the batch, the attention is none, or the graphs do not run.
    """
    sources = golden_sources(manifest, vocabulary_size)
    size = min(BEAM_SIZE, *engine.on_each_thread(lambda runner: runner.slots))
    goldens = [*map(Golden, sources), Golden(sources[len(sources) // 2], size)]
    try:
        engine.on_each_thread(Runner.prepare)
        pending, found = deque(enumerate(goldens)), dict[int, Decoded]()
        engine.on_each_thread(lambda runner: _decode_alone(runner, pending, found, manifest))
        alone = [found[number] for number in range(len(goldens))]
        # Each of them in several slots; some in the batch before the others, and all of them until one leaves.
        company = [goldens[::-1], goldens, goldens[1::2]]
        together = engine.on_each_thread(lambda runner: _decode(runner, company, manifest))
        changes = engine.on_each_thread(lambda runner: _change_by_padding(runner, sources[0], sources[-1]))
    except Exception as error:  # of the runtime, whose exceptions share no base class of its own
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
    """Make ids that look like sentences to the model, the same at every start; they mean nothing."""
    chance = random.Random(LENGTHS[0])
    ids = range(min(_FIRST_ID, vocabulary_size - 1), vocabulary_size)
    lengths = [min(length, manifest.max_source_tokens) for length in LENGTHS]
    return [[*chance.choices(ids, k=length - 1), manifest.eos_id] for length in lengths]


def _change_by_padding(runner: Runner, short: list[int], long: list[int]) -> float:
    """Measure how far a longer neighbour moves a source's encoder memory, relative to its length."""
    alone, beside = np.asarray(runner.encode([short])[0]), np.asarray(runner.encode([short, long])[0])
    if np.array_equal(alone, beside):
        return 0.0
    whole = alone.astype(np.float32)
    change = np.linalg.norm(beside.astype(np.float32) - whole) / np.linalg.norm(whole)
    return float(change) if np.isfinite(change) else np.inf


def _decode_alone(
    runner: Runner, pending: deque[tuple[int, Golden]], found: dict[int, Decoded], manifest: Manifest
) -> None:
    """Decode one sentence after the other, as long as there are any that no other thread has taken."""
    while True:
        try:
            number, golden = pending.popleft()
        except IndexError:
            return
        [found[number]] = _decode(runner, [[golden]], manifest)


def _decode(runner: Runner, waves: Sequence[Sequence[Golden]], manifest: Manifest) -> list[Decoded]:
    """Decode sentences, one wave after the other joining; gives what became of all of them, in order."""
    decodes = [[_new_decode(manifest, golden) for golden in wave] for wave in waves]
    is_exact = manifest.precision in _EXACT_PRECISIONS
    hashes: dict[Decode, Any] = defaultdict(hashlib.sha256)

    def watch(decode: Decode, logits: NDArray[np.floating]) -> None:
        if is_exact and decode.slots == 1:  # the hypotheses of a search stand in any order
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
            _without_attention(decode) if is_exact else (),
            hashes[decode].hexdigest(),
        )
        for decode in flat
    ]


def _check_attention(decode: Decode) -> None:
    """Raise ValueError where a token's attention is no share of each token of the source."""
    for weights in decode.attention:
        total = float(weights.sum())
        if weights.shape != (len(decode.source_ids),) or not abs(total - 1.0) <= _SUM_ROUNDING:  # nor if it is NaN
            raise ValueError(
                f"the attention of a token must be {len(decode.source_ids)} shares that add up to 1, "
                f"is {weights.shape[0]} that add up to {total:g}"
            )


def _without_attention(decode: Decode) -> list[Hypothesis]:
    """Give what a search has found, for comparison; of an array, == says no yes or no."""
    return [found._replace(attention=()) for found in decode.hypotheses]


def _new_decode(manifest: Manifest, golden: Golden) -> Decode:
    source, size = golden
    return Decode(
        source,
        min(TARGET_TOKENS, manifest.max_target_tokens),
        start_ids=_start_ids(manifest, source),
        decoding=Decoding(beam_size=size, alternatives=size if size > 1 else 0, wants_attention=True),
    )


def _start_ids(manifest: Manifest, source: list[int]) -> tuple[int, ...]:
    """Give a golden sentence a target language, by its length: so a batch has several."""
    targets = manifest.languages.targets
    return Frame.of(manifest.languages, manifest, target=targets[len(source) % len(targets)]).start_ids


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
