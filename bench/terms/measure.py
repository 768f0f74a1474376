"""One set of sentences translated in several ways: what of the terms is there, how good it is, what it costs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.bleu import bleu
from bench.terms.tasks import Task, occurrences
from dragoman.bundle import Bundle, target_limit
from dragoman.glossary import GlossaryEntry
from service.constraints import Constraints
from service.decode import Decode, FinishReason
from service.engine.offline import OfflineEngine
from service.options import Decoding, RequestOptions
from service.terms import Index, Terms
from service.text import translator


class Way(NamedTuple):
    """A way to translate.

    Attributes:
        beam_size: hypotheses that are kept; 1: greedy decoding.
        constrained: whether the search is for translations that hold the terms.
        as_glossary: whether they are asked for as a server is asked, which lets them give way where they cost too much,
            and writes them in place of the aligned words then.
    """

    beam_size: int
    constrained: bool
    as_glossary: bool = False

    def __str__(self) -> str:
        if self.as_glossary:
            return f"glossary, beam {self.beam_size}"
        name = "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"
        return f"constrained {name}" if self.constrained else name


@dataclass(frozen=True)
class Found:
    """What was found out about a way to translate.

    Attributes:
        terms: of each sentence.
        way: to translate.
        sentences: that were translated.
        with_all: of these, how many have all terms.
        twice: terms that stand in a translation more than once.
        unmet: translations that lack terms and are cut off; of a glossary, those that name terms as missing.
        bleu: of all; None where there is no sacrebleu.
        seconds: of the processor, for all sentences, in each round.
        fits: whether the terms translate words of their sentences.
    """

    terms: int
    way: Way
    sentences: int
    with_all: int
    twice: int
    unmet: int
    bleu: float | None
    seconds: list[float]
    fits: bool = True

    @property
    def ms_a_sentence(self) -> float:
        """The least of all rounds."""
        return min(self.seconds) / self.sentences * 1e3


class _Translation(NamedTuple):
    text: str
    is_short: bool  # cut off, or with terms that it names as missing


class Translator:
    """A model, on one thread, that decodes all sentences at once."""

    def __init__(self, bundle: Bundle, slots: int) -> None:
        """Load it."""
        self._manifest = bundle.manifest
        self._tokenizer = bundle.tokenizer()
        self._engine = OfflineEngine(bundle, threads=1, slots=slots)
        self._served = translator.Translator(bundle.manifest, self._tokenizer, slots=slots)

    def close(self) -> None:
        """End it."""
        self._engine.close()

    def greedy(self, sources: Sequence[str]) -> list[str]:
        """Translate sentences."""
        decodes = [self._decode(source, (), Way(1, constrained=False)) for source in sources]
        self._engine.decode(decodes)
        return [self._tokenizer.decode(decode.target_ids) for decode in decodes]

    def measure(self, tasks: Sequence[Task], ways: Sequence[Way], rounds: int, *, fits: bool = True) -> list[Found]:
        """Translate sentences in all ways, one after the other, in each round."""
        seconds: dict[Way, list[float]] = {way: [] for way in ways}
        results: dict[Way, list[_Translation]] = {}
        for _ in range(rounds):
            for way in ways:
                start_s = time.process_time()
                results[way] = self._with_glossary(tasks, way) if way.as_glossary else self._searched(tasks, way)
                seconds[way].append(time.process_time() - start_s)
        return [_found(tasks, way, results[way], seconds[way], fits=fits) for way in ways]

    def _searched(self, tasks: Sequence[Task], way: Way) -> list[_Translation]:
        decodes = [self._decode(task.source, task.terms, way) for task in tasks]
        self._engine.decode(decodes)
        return [
            _Translation(self._tokenizer.decode(decode.target_ids), decode.finish_reason is FinishReason.LENGTH)
            for decode in decodes
        ]

    def _with_glossary(self, tasks: Sequence[Task], way: Way) -> list[_Translation]:
        documents = []
        for task in tasks:
            entries = [GlossaryEntry(word, (term,)) for word, term in zip(task.words, task.terms, strict=True)]
            decoding = Decoding.of(beam_size=way.beam_size)
            options = RequestOptions(decoding=decoding, terms=Terms([Index(entries)]))
            documents.append(self._served.prepare(task.source, options))
        results = translator.decode_offline(self._engine, documents)
        return [_Translation(result.text, bool(result.glossary_misses)) for result in results]

    def _decode(self, source: str, terms: Sequence[str], way: Way) -> Decode:
        manifest, ids = self._manifest, self._tokenizer.encode(source)
        limit, constraints = target_limit(len(ids), manifest.max_target_tokens), None
        if way.constrained:
            forms = tuple((tuple(self._tokenizer.encode_target(term)),) for term in terms)
            constraints = Constraints(forms, self._tokenizer.begins_word)
            limit = min(limit + constraints.tokens, manifest.max_target_tokens)
        decoding = Decoding.of(beam_size=way.beam_size)
        return Decode([*ids, manifest.eos_id], limit, decoding=decoding, constraints=constraints)


def _found(
    tasks: Sequence[Task], way: Way, translations: Sequence[_Translation], seconds: list[float], *, fits: bool
) -> Found:
    counts = [
        [occurrences(term, translation.text) for term in task.terms]
        for task, translation in zip(tasks, translations, strict=True)
    ]
    return Found(
        terms=len(tasks[0].terms),
        way=way,
        sentences=len(tasks),
        with_all=sum(map(all, counts)),
        twice=sum(count > 1 for row in counts for count in row),
        unmet=sum(translation.is_short and not all(row) for translation, row in zip(translations, counts, strict=True)),
        bleu=bleu([translation.text for translation in translations], [task.reference for task in tasks]),
        seconds=seconds,
        fits=fits,
    )
