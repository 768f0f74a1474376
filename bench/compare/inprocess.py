"""Two parts of the comparison that need no server: all sentences at once, and one sentence at a time."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median

from bench.compare.outcome import Outcome, Side, Trial, describe
from bench.frame import Log, in_turn
from bench.peers.contender import Contender, Program, Settings
from bench.sentences import Sentences, equal_sentences

# A thread pool may spin for a while after its work, and would take a core from the next program.
PAUSE_S = 0.3
WARM_UP = 64

Score = Callable[[Sequence[list[int]]], float | None]


@dataclass(frozen=True)
class Part:
    """One way to measure a program in this process."""

    name: str
    unit: str
    higher_is_better: bool
    choices: Callable[[Program], Sequence[Settings]]
    measure: Callable[[Contender, Sentences], float]


def sentences_per_second(contender: Contender, sentences: Sentences) -> float:
    start_s = time.perf_counter()
    contender.translate(sentences)
    return len(sentences) / (time.perf_counter() - start_s)


def median_latency_ms(contender: Contender, sentences: Sentences) -> float:
    latencies_ms = []
    for place in range(len(sentences)):
        one = sentences.take([place])
        start_s = time.perf_counter()
        contender.translate(one)
        latencies_ms.append((time.perf_counter() - start_s) * 1e3)
    return median(latencies_ms)


OFFLINE = Part("offline", "sentences/s", True, lambda program: program.offline, sentences_per_second)
SINGLE = Part("single", "ms", False, lambda program: program.single, median_latency_ms)


def sweep(part: Part, program: Program, sentences: Sentences, log: Log) -> list[Trial]:
    trials = []
    for settings in part.choices(program):
        with ExitStack() as stack:
            figure = part.measure(_open(part, program, settings, sentences, stack), sentences)
        trials.append(Trial(settings, figure))
        log(f"sweep {part.name} {program.name} {describe(settings)}: {figure:.4g} {part.unit}")
        time.sleep(PAUSE_S)
    return trials


def compare(
    part: Part,
    model: str,
    programs: tuple[Program, Program],
    sentences: Sentences,
    rounds: int,
    log: Log,
    score: Score | None = None,
) -> Outcome:
    """Sweep both programs, ours first, then measure each at its best, in turn; `score` gives BLEU of target ids."""
    trials = [sweep(part, program, sentences, log) for program in programs]
    best = max if part.higher_is_better else min
    settings = [best(tried, key=lambda trial: trial.figure).settings for tried in trials]

    def measure(program: Program, contender: Contender) -> float:
        time.sleep(PAUSE_S)
        figure = part.measure(contender, sentences)
        log(f"{model} {part.name} {program.name}: {figure:.4g} {part.unit}")
        return figure

    with ExitStack() as stack:
        opened = [
            _open(part, program, chosen, sentences, stack) for program, chosen in zip(programs, settings, strict=True)
        ]
        figures = in_turn([partial(measure, *each) for each in zip(programs, opened, strict=True)], rounds)
        translations = [side.translate(sentences) for side in opened] if part is OFFLINE else []
    ours, theirs = (
        Side(program.name, program.precision, chosen, tried, measured)
        for program, chosen, tried, measured in zip(programs, settings, trials, figures, strict=True)
    )
    return Outcome(
        model,
        part.name,
        part.unit,
        part.higher_is_better,
        ours,
        theirs,
        len(sentences),
        equal=equal_sentences(*translations) if translations else None,
        target_tokens=[sum(map(len, ids)) for ids in translations],
        bleu=[score(ids) for ids in translations] if score and translations else (None, None),
    )


def _open(part: Part, program: Program, settings: Settings, sentences: Sentences, stack: ExitStack) -> Contender:
    """Load and warm up; closed with the stack."""
    contender = program.open(settings)
    stack.callback(contender.close)
    part.measure(contender, sentences.pick(WARM_UP))
    return contender
