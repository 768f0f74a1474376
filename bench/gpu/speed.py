"""Tokens a second at numbers of slots, ours and CTranslate2's; and the time of our steps beside the least there is."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Final

from bench.decoding import Batch, Graphs
from bench.frame import Figures, write_json
from bench.gpu.accuracy import real_sentences
from bench.gpu.floor import StepBytes, copy_bytes_per_s, step_bytes
from bench.gpu.models import open_bundle
from bench.gpu.task import Task, left_out, slot_counts
from bench.peers.random_model import SHAPES, TOKENS
from bench.sentences import Sentences, random_sentences
from dragoman.bundle import Bundle
from dragoman.tokenizer import JOINT, SOURCE
from model.corpus import read_corpus

ROUNDS: Final = 2
SENTENCES_PER_SLOT: Final = 8
FEWEST_SENTENCES: Final = 24
_RANDOM_SENTENCES: Final = 512
_SLOTS: Final = 32  # where it does not matter how fast it is
# The most telling slot counts come first, in case that time runs out.
_FIRST: Final = (256, 1, 64, 1024, 16)
# Of CTranslate2; a CPU has no arithmetic in fp16 there.
_COMPUTE_TYPES: Final = {"cuda": "float16", "cpu": "float32"}
_RATES: Final = "speed.json"


def speed(task: Task) -> Figures:
    """Measure ours at 1, 2, 4, ... slots; what there is no time for is named in `left_out`."""
    bundle, device = open_bundle(task), task.setup.device
    sentences, opened = _sentences(task, bundle), Graphs.resident(bundle, device)
    floor = step_bytes(bundle, [len(ids) for ids in sentences.sources], _target_tokens(task, opened, sentences))
    bytes_per_s = copy_bytes_per_s(device)
    figures: Figures = {"copy_bytes_per_s": bytes_per_s, "weight_bytes": floor.weights, "row_bytes": floor.row}
    figures |= _sweep(task, lambda slots: at(slots, opened, sentences, floor, bytes_per_s))
    write_json(task.folder / _RATES, {str(row["slots"]): row["tokens_per_s"] for row in figures["rows"]})
    return figures


def peer(task: Task) -> Figures:
    """Measure CTranslate2 in fp16 on the same sentences, in batches of as many; ours are `times_the_peer` as fast."""
    import ctranslate2

    from bench.peers.convert import vocabulary

    bundle, device, file = open_bundle(task), task.setup.device, task.folder / _RATES
    joint = bundle.path / JOINT
    pieces = vocabulary(joint if joint.exists() else bundle.path / SOURCE)
    translator = ctranslate2.Translator(
        str(task.folder / "ctranslate2"), device=device, compute_type=_COMPUTE_TYPES[device], intra_threads=1
    )
    sentences, ours = _sentences(task, bundle), json.loads(file.read_text()) if file.exists() else {}

    def measure(slots: int) -> Figures:
        portion = cycled(sentences, slots)
        sources, limit = [[pieces[index] for index in ids] for ids in portion.sources], max(portion.limits)

        def count_tokens() -> int:
            found = translator.translate_batch(sources, beam_size=1, max_batch_size=slots, max_decoding_length=limit)
            lengths = [len(result.hypotheses[0]) for result in found]
            return sum(length + (length < limit) for length in lengths)

        count_tokens()
        rate, known = tokens_per_s(count_tokens), ours.get(str(slots))
        return {"slots": slots, "tokens_per_s": rate, "times_the_peer": known and known / rate}

    return _sweep(task, measure)


def at(slots: int, opened: Graphs, sentences: Sentences, floor: StepBytes, bytes_per_s: float) -> Figures:
    """Measure tokens a second; the mean time of steps, the rows they had, and the least time that such steps take."""
    portion, batch = cycled(sentences, slots), Batch(opened, slots)
    batch.count_tokens(portion)  # what is first takes longer
    before = batch.steps
    rate = tokens_per_s(lambda: batch.count_tokens(portion))
    steps, seconds, all_rows = (batch.steps - before).tolist()
    step_ms, rows = seconds / steps * 1e3, all_rows / steps
    floor_ms = floor.least_ms(rows, bytes_per_s)
    return {
        "slots": slots,
        "sentences": len(portion),
        "tokens_per_s": rate,
        "step_ms": step_ms,
        "mean_rows": rows,
        "floor_ms": floor_ms,
        "times_the_floor": step_ms / floor_ms,
    }


def tokens_per_s(count_tokens: Callable[[], int]) -> float:
    """Decode again and again; the fastest counts."""
    rates = []
    for _ in range(ROUNDS):
        start_s = time.perf_counter()
        rates.append(count_tokens() / (time.perf_counter() - start_s))
    return max(rates)


def _sweep(task: Task, measure: Callable[[int], Figures]) -> Figures:
    order, rows = in_order_of_value(task.setup.most_slots), list[Figures]()
    for slots in task.rounds(order):
        rows = sorted([*rows, measure(slots)], key=lambda row: int(row["slots"]))
        task.note({"rows": rows})
    return {"left_out": left_out("slots", order[len(rows) :]), "rows": rows}


def in_order_of_value(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to `most`, the most telling ones first."""
    counts = slot_counts(most)
    first = [count for count in _FIRST if count in counts]
    return [*first, *(count for count in reversed(counts) if count not in first)]


def _sentences(task: Task, bundle: Bundle) -> Sentences:
    if task.size in SHAPES:
        return random_sentences(bundle.manifest, [TOKENS] * _RANDOM_SENTENCES, [TOKENS] * _RANDOM_SENTENCES)
    texts = read_corpus(task.setup.data).sources[: task.setup.sentences]
    return real_sentences(bundle, texts)


def _target_tokens(task: Task, opened: Graphs, sentences: Sentences) -> Sequence[int]:
    """Count the tokens of each translation, its end counted; a random model goes on to the limit."""
    if task.size in SHAPES:
        return sentences.limits
    decoded = Batch(opened, min(_SLOTS, task.setup.most_slots)).decode(sentences)
    return [min(len(ids) + 1, limit) for ids, limit in zip(decoded, sentences.limits, strict=True)]


def cycled(sentences: Sentences, slots: int) -> Sentences:
    """Repeat sentences until they keep the slots busy for a while."""
    count = max(FEWEST_SENTENCES, SENTENCES_PER_SLOT * slots)
    return sentences.take([index % len(sentences) for index in range(count)])
