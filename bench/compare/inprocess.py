"""Two parts of the comparison that need no server: all sentences at once, and one sentence at a time."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from bench.compare.search import Ratio, Trial, best_of
from bench.frame import in_turn
from bench.log import Log
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


@dataclass(frozen=True)
class Agreement:
    """Whether two sides did the same work; in int8 each rounds in its own way.

    Attributes:
        equal: of them with the very same target ids.
        target_tokens: of the two sides, ours first.
    """

    sentences: int
    equal: int
    target_tokens: tuple[int, int]

    @classmethod
    def of(cls, ours: Sequence[list[int]], theirs: Sequence[list[int]]) -> "Agreement":
        return cls(len(ours), equal_sentences(ours, theirs), (sum(map(len, ours)), sum(map(len, theirs))))


@dataclass(frozen=True)
class Outcome:
    """What came out for one part, model and peer.

    Attributes:
        names: of the two sides, ours first.
        figures: [sides][rounds].
        agreement: of what they translated; None where that was not looked at.
        bleu: of both; None where there are no references, or no sacrebleu.
    """

    model: str
    part: str
    unit: str
    higher_is_better: bool
    names: tuple[str, str]
    precisions: tuple[str, str]
    settings: tuple[Settings, Settings]
    sweeps: tuple[Sequence[Trial], Sequence[Trial]]
    figures: tuple[Sequence[float], Sequence[float]]
    agreement: Agreement | None = None
    bleu: Sequence[float | None] = (None, None)

    @property
    def ratio(self) -> Ratio:
        return Ratio.of(*self.figures)


def sentences_per_second(contender: Contender, sentences: Sentences) -> float:
    start_s = time.perf_counter()
    contender.translate(sentences)
    return len(sentences) / (time.perf_counter() - start_s)


def median_latency_ms(contender: Contender, sentences: Sentences) -> float:
    latencies_ms = []
    for source, limit in zip(sentences.sources, sentences.limits, strict=True):
        start_s = time.perf_counter()
        contender.translate_one(source, limit)
        latencies_ms.append((time.perf_counter() - start_s) * 1e3)
    return median(latencies_ms)


OFFLINE = Part("offline", "sentences/s", True, lambda program: program.offline, sentences_per_second)
SINGLE = Part("single", "ms", False, lambda program: program.single, median_latency_ms)


def sweep(part: Part, program: Program, sentences: Sentences, log: Log) -> list[Trial]:
    trials = []
    for settings in part.choices(program):
        with ExitStack() as stack:
            figure = part.measure(_open(part, program, settings, sentences, stack), sentences)
        trials.append(Trial(dict(settings), figure))
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
    """Sweep both programs, then measure each at its best, in turn.

    Args:
        programs: ours, then theirs.
        score: gives BLEU of all target ids.
    """
    trials = [sweep(part, program, sentences, log) for program in programs]
    best = [best_of(tried, higher_is_better=part.higher_is_better).settings for tried in trials]

    def measure(program: Program, contender: Contender) -> float:
        time.sleep(PAUSE_S)
        figure = part.measure(contender, sentences)
        log(f"{model} {part.name} {program.name}: {figure:.4g} {part.unit}")
        return figure

    with ExitStack() as stack:
        opened = [
            _open(part, program, settings, sentences, stack) for program, settings in zip(programs, best, strict=True)
        ]
        figures = in_turn(
            [lambda p=p, c=c: measure(p, c) for p, c in zip(programs, opened, strict=True)],  # type: ignore[misc]
            rounds,
        )
        translations = [side.translate(sentences) for side in opened] if part is OFFLINE else []
    return Outcome(
        model=model,
        part=part.name,
        unit=part.unit,
        higher_is_better=part.higher_is_better,
        names=(programs[0].name, programs[1].name),
        precisions=(programs[0].precision, programs[1].precision),
        settings=(best[0], best[1]),
        sweeps=(trials[0], trials[1]),
        figures=(figures[0], figures[1]),
        agreement=Agreement.of(*translations) if translations else None,
        bleu=[score(ids) for ids in translations] if score and translations else (None, None),
    )


def describe(settings: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "-"


def _open(part: Part, program: Program, settings: Settings, sentences: Sentences, stack: ExitStack) -> Contender:
    """Load and warm up; closed with the stack."""
    contender = program.open(settings)
    stack.callback(contender.close)
    part.measure(contender, sentences.pick(WARM_UP))
    return contender
