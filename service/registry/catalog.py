"""The served models, and the choice of the model of a request."""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

from dragoman import language
from dragoman.bundle import Manifest
from dragoman.errors import LoadingError, UnknownLanguagePairError, UnknownModelError
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.text.translator import Translator


class Pipeline(NamedTuple):
    """The parts of a model that work for calls while it is in memory.

    Attributes:
        intake: takes the segments, before the mailbox does.
    """

    translator: Translator
    mailbox: Mailbox
    intake: Intake

    @property
    def busy(self) -> bool:
        """Whether segments wait for the engine or run on it."""
        return bool(self.mailbox.unfinished or self.intake.unfinished)

    def close(self) -> None:
        """Refuse segments from now on, and forget all results."""
        self.mailbox.close()
        self.intake.results.clear()


class EngineHandle(Protocol):
    """The engine of a model, as the server sees it."""

    ended: Future[None]

    def step_age_s(self) -> float:
        """Measure how long its current step has been running; 0 where none does."""

    def stop(self) -> None:
        """End the engine and free its memory; unfinished segments fail."""


@dataclass(eq=False)
class ServedModel:
    """One model: its manifest, and its pipeline and engine while it is in memory; lives on the event loop.

    Attributes:
        slots: slots of each engine thread; no segment may take more.
        pipeline: None while the model is not in memory.
        engine: the engine of the pipeline; None while there is none.
        cost_bytes: memory that the model takes, or would take once loaded; see `model_cost`.
        leaving: whether it refuses new calls, because other models wait for its memory.
        last_used_s: when a call last began or ended, on the clock of `time.monotonic`; 0 before the first call.
    """

    manifest: Manifest
    slots: int
    pipeline: Pipeline | None = None
    engine: EngineHandle | None = None
    cost_bytes: int = 0
    leaving: bool = field(default=False, init=False)
    last_used_s: float = field(default=0.0, init=False)
    _held_since_s: dict[object, float] = field(default_factory=dict, init=False)  # by call, the oldest first

    @property
    def name(self) -> str:
        """The name in its manifest."""
        return self.manifest.name

    @property
    def takes_calls(self) -> bool:
        """Whether a call can begin now; otherwise the call waits until the model is in memory."""
        return self.pipeline is not None and not self.leaving

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the model during the block, even if it is withdrawn: a call has chosen it and will bring segments."""
        holder = object()
        self._held_since_s[holder] = self.last_used_s = time.monotonic()
        try:
            yield
        finally:
            del self._held_since_s[holder]
            self.last_used_s = time.monotonic()

    @property
    def held_since_s(self) -> float | None:
        """When the oldest of its calls began, on the clock of `time.monotonic`; None where it has none."""
        return next(iter(self._held_since_s.values()), None)

    @property
    def busy(self) -> bool:
        """Whether a call holds the model, or segments wait for its engine or run on it."""
        return bool(self._held_since_s) or (self.pipeline is not None and self.pipeline.busy)

    def close(self) -> None:
        """Refuse segments from now on, and forget the pipeline."""
        pipeline, self.pipeline = self.pipeline, None
        self.leaving = False
        if pipeline is not None:
            pipeline.close()

    def in_memory(self) -> Pipeline:
        """Give the pipeline; raises LoadingError where the model is not in memory."""
        if self.pipeline is None:
            raise LoadingError(f"model {self.name} is not in memory")
        return self.pipeline


class Choice(NamedTuple):
    """The model of a request, with the languages of the request as codes of the model.

    Attributes:
        model: the model that translates into `target`.
        source: one of the model's source languages; "" where it has several and the request names none.
        target: one of its target languages; "" likewise.
        pivot: the choice that translates into `source` first; None where one model serves the request.
    """

    model: ServedModel
    source: str
    target: str
    pivot: "Choice | None" = None

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """All models that translate the texts, in this order."""
        return (*(self.pivot.models if self.pivot else ()), self.model)

    def closeness(self) -> tuple[bool, int]:
        """Give a sort key: of two choices, the greater one fits the request more closely."""
        return self.model.manifest.languages.is_pair, len(self.source) + len(self.target)


class Catalog:
    """All served models, ordered by name."""

    def __init__(self, models: Iterable[ServedModel], pivot_language: str = "") -> None:
        """Make a catalog.

        Args:
            pivot_language: the language between source and target where no model serves both; "": none.
        """
        self._pivot_language = pivot_language
        self._models = sorted(models, key=lambda model: model.manifest.name)
        self._known_sources = lru_cache(maxsize=64)(self._sources)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models)

    def knows(self, language: str) -> bool:
        """Tell whether a model has a language of this code or alias."""
        return any(
            model.manifest.languages.source(language) or model.manifest.languages.target(language)
            for model in self._models
        )

    def choose(self, name: str, source: str, target: str) -> Choice:
        """Find the model of a request, and its languages.

        Args:
            name: name of the model; "" chooses the closest match by the languages: a model of one pair before a model
                of many languages, and of equal ones the first by name.
            source: BCP-47 code, or an alias that a model has for it; "" only with a name: any language of the model.
            target: as `source`; "": the only target language of the model.

        Raises:
            UnknownModelError: no model has the name.
            UnknownLanguagePairError: the named model, or every model, is for other languages.
        """
        candidates = self._candidates(name)
        choice = self._fitting(name, source, target)
        if choice is None:
            raise UnknownLanguagePairError(
                f"no translation from {language.quoted(source)} to {language.quoted(target)}; "
                f"{'the model' if name else 'the server'} has {', '.join(map(_languages, candidates))}",
                metadata={"source_language_code": source, "target_language_code": target, "model": name},
            )
        return choice

    def sources(self, name: str, target: str) -> tuple[str, ...]:
        """List the languages from which a request can be translated, those of the first model first; there may be none.

        Args:
            name: name of the request's model, or "".
            target: as for :meth:`choose`; "": any.

        Raises:
            UnknownModelError: no model has the name.
        """
        # Only what a model writes is cached: what a request asks for in vain may be megabytes.
        models = self._candidates(name)
        if target and not any(model.manifest.languages.target(target) for model in models):
            return ()
        return self._known_sources(name, target)

    def first_source(self, target: str = "") -> str:
        """Give the first language with a translation into `target`, if any, for texts whose language is unknown."""
        return next(iter(self.sources("", target) or self.pairs))

    @cached_property
    def languages(self) -> frozenset[str]:
        """The codes of all languages that a model reads or writes."""
        manifests = [model.manifest for model in self._models]
        return frozenset(code for each in manifests for code in (*each.source_languages, *each.target_languages))

    @cached_property
    def pairs(self) -> dict[str, list[str]]:
        """The languages into which each source language can be translated; in the order of the models."""
        pairs: dict[str, dict[str, None]] = {}
        manifests = [model.manifest for model in self._models]
        for manifest in manifests:
            for source in manifest.source_languages:
                pairs.setdefault(source, {}).update(dict.fromkeys(manifest.target_languages))
        if pivot := self._pivot_language:
            beyond = [target for each in manifests if each.languages.source(pivot) for target in each.target_languages]
            for each in manifests:
                for source in each.source_languages if each.languages.target(pivot) else ():
                    pairs[source].update(dict.fromkeys(code for code in beyond if not language.covers(code, source)))
        return {source: [target for target in targets if target != source] for source, targets in pairs.items()}

    @cached_property
    def needs_target(self) -> bool:
        """Whether a language is translated into several others, so that a request has to name its target."""
        return any(len(targets) > 1 for targets in self.pairs.values())

    def _sources(self, name: str, target: str) -> tuple[str, ...]:
        models = self._candidates(name)
        codes = dict.fromkeys(code for model in models for code in model.manifest.source_languages)
        return tuple(code for code in codes if self._fitting(name, code, target))

    def _candidates(self, name: str) -> list[ServedModel]:
        return [self.named(name)] if name else self._models

    def _fitting(self, name: str, source: str, target: str) -> Choice | None:
        """Find the model of a request, or two; see :meth:`choose`."""
        choice = _closest(self._candidates(name), source, target)
        return choice or (None if name else self._over_pivot(source, target))

    def _over_pivot(self, source: str, target: str) -> Choice | None:
        """Find two models that translate through the pivot language; None where there are none.

        None also where the source is in the target language already: a text is not translated there and back.
        """
        if not self._pivot_language:
            return None
        into = _closest(self._models, source, self._pivot_language)
        out_of = _closest(self._models, self._pivot_language, target)
        if into is None or out_of is None or language.covers(out_of.target, into.source):
            return None
        return out_of._replace(pivot=into)

    def named(self, name: str) -> ServedModel:
        """Find a model by its name."""
        for model in self._models:
            if model.manifest.name == name:
                return model
        names = ", ".join(model.manifest.name for model in self._models)
        raise UnknownModelError(f"no model {name[:64]!r}; there are: {names}", metadata={"model": name})


def _closest(models: Iterable[ServedModel], source: str, target: str) -> Choice | None:
    choices = [choice for model in models if (choice := _fitting(model, source, target))]
    return max(choices, key=Choice.closeness, default=None)


def _fitting(model: ServedModel, source: str, target: str) -> Choice | None:
    """Match a request's languages with a model's, "" for a language that the request omits; None if one is missing."""
    languages = model.manifest.languages
    reads, writes = languages.source(source) or "", languages.target(target) or ""
    if (source and not reads) or (target and not writes):
        return None
    # Source and target are one language: there is nothing to translate, unless the model is made for this pair.
    return None if reads and reads == writes and not languages.is_pair else Choice(model, reads, writes)


def _languages(model: ServedModel) -> str:
    """Name the source and target languages of a model."""
    sides = model.manifest.source_languages, model.manifest.target_languages
    return " to ".join(language.several(codes, "/") for codes in sides)
