"""Tokens a second at numbers of slots, beside CTranslate2; and the time of a step beside the least that it takes."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from bench.decoding import Batch, Graphs
from bench.gpu.accuracy import real_sentences
from bench.gpu.floor import StepBytes, copy_bytes_per_s, step_bytes
from bench.gpu.models import CONFIGS, TOKENS, open_bundle, peer_folder
from bench.gpu.peer import Peer
from bench.gpu.setup import Figures, Task, left_out, slot_counts
from bench.load.texts import read_pairs
from bench.sentences import Sentences, random_sentences
from dragoman.bundle import Bundle

ROUNDS: Final = 2
SENTENCES_PER_SLOT: Final = 8
FEWEST_SENTENCES: Final = 24
_RANDOM_SENTENCES: Final = 512
_SLOTS: Final = 32  # where it does not matter how fast it is
# The most telling slot counts come first, in case that time runs out.
_FIRST: Final = (256, 1, 64, 1024, 16)


def speed(task: Task) -> Figures:
    """Measure at 1, 2, 4, ... slots, ours and the peer's in turn; what there is no time for is named in `left_out`."""
    bundle = open_bundle(task)
    sentences = _sentences(task, bundle)
    opened = Graphs.resident(bundle, task.setup.device)
    floor = step_bytes(bundle, [len(ids) for ids in sentences.sources], _target_tokens(task, opened, sentences))
    bytes_per_s = copy_bytes_per_s(task.setup.device)
    figures: Figures = {
        "copy_bytes_per_s": bytes_per_s,
        "weight_bytes": floor.weights,
        "row_bytes": floor.row,
        "rows": [],
    }
    measure = Measurement(opened, sentences, floor, bytes_per_s)
    peer = Rival(task, bundle)
    try:
        return _sweep(task, measure, peer, figures)
    finally:
        peer.close()


def _sweep(task: Task, measure: "Measurement", peer: "Rival", figures: Figures) -> Figures:
    order = in_order_of_value(task.setup.most_slots)
    figures["left_out"] = left_out("slots", order)
    task.note(figures)
    for slots in task.clock.rounds(order):
        row = measure.at(slots, peer.rate)
        figures["rows"] = sorted([*figures["rows"], row], key=lambda row: int(row["slots"]))
        figures["left_out"] = left_out("slots", order[len(figures["rows"]) :])
        figures["peer_error"] = peer.error
        task.note(figures)
    return figures


def in_order_of_value(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to `most`, the most telling ones first."""
    counts = slot_counts(most)
    first = [count for count in _FIRST if count in counts]
    return [*first, *(count for count in reversed(counts) if count not in first)]


def _sentences(task: Task, bundle: Bundle) -> Sentences:
    if task.size in CONFIGS:
        return random_sentences(bundle.manifest, [TOKENS] * _RANDOM_SENTENCES, [TOKENS] * _RANDOM_SENTENCES)
    texts, _ = read_pairs(task.setup.data, task.setup.sentences)
    return real_sentences(bundle, texts)


def _target_tokens(task: Task, opened: Graphs, sentences: Sentences) -> Sequence[int]:
    """Count the tokens of each translation, its end counted; a random model goes on to the limit."""
    if task.size in CONFIGS:
        return sentences.limits
    decoded = Batch(opened, min(_SLOTS, task.setup.most_slots)).decode(sentences)
    return [min(len(ids) + 1, limit) for ids, limit in zip(decoded, sentences.limits, strict=True)]


def cycled(sentences: Sentences, slots: int) -> Sentences:
    """Repeat sentences until they keep the slots busy for a while."""
    count = max(FEWEST_SENTENCES, SENTENCES_PER_SLOT * slots)
    return sentences.take([index % len(sentences) for index in range(count)])


class Rival:
    """CTranslate2, as long as it works: the first error ends it, and nothing else."""

    def __init__(self, task: Task, bundle: Bundle) -> None:
        """Start it, if there is a converted model."""
        self._clock = task.clock
        self._peer: Peer | None = None
        self.error: str | None = None
        if peer_folder(task).exists():
            self._peer = Peer(peer_folder(task), bundle.path, task.setup.device)
        else:
            self.error = "no converted model: see its preparation"

    def rate(self, sentences: Sentences, slots: int) -> float | None:
        """Measure target tokens a second in batches of `slots`; None once it has failed."""
        if self._peer is None:
            return None
        try:
            return self._peer.tokens_per_s(sentences, slots, max(self._clock.left_s / 2, 1.0))
        except Exception as error:  # whatever a library without its own libraries does
            self.error = f"{type(error).__name__}: {' '.join(str(error).split())}"
            self.close()
            return None

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None


class Measurement:
    def __init__(self, opened: Graphs, sentences: Sentences, floor: StepBytes, bytes_per_s: float) -> None:
        self._opened = opened
        self._sentences = sentences
        self._floor = floor
        self._bytes_per_s = bytes_per_s

    def at(self, slots: int, peer: Callable[[Sentences, int], float | None]) -> Figures:
        """Measure each side twice, in turn, after a round that does not count; the faster round counts.

        Args:
            peer: measures the peer's tokens a second on sentences, in batches of a size; None where there is none.

        Returns:
            Tokens a second; and the mean time of our steps, the rows they had, and the least time that such steps take.
        """
        portion, batch = cycled(self._sentences, slots), Batch(self._opened, slots)
        batch.count_tokens(portion)
        theirs = [peer(portion, slots)]
        before, ours = batch.steps, list[float]()
        for _ in range(ROUNDS):
            start = time.perf_counter()
            ours.append(batch.count_tokens(portion) / (time.perf_counter() - start))
            theirs.append(peer(portion, slots))
        steps = batch.steps - before
        step_ms, rows = steps.seconds / steps.count * 1e3, steps.rows / steps.count
        floor_ms = self._floor.least_ms(rows, self._bytes_per_s)
        figures = {"slots": slots, "sentences": len(portion), "tokens_per_s": max(ours)}
        if None not in theirs:
            rival = max(rate for rate in theirs[1:] if rate is not None)
            figures |= {"peer_tokens_per_s": rival, "times_the_peer": max(ours) / rival}
        return figures | {
            "step_ms": step_ms,
            "mean_rows": rows,
            "floor_ms": floor_ms,
            "times_the_floor": step_ms / floor_ms,
        }
