"""The models that are served, and which of them a request means."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from dragoman.bundle import Manifest
from dragoman.errors import UnknownLanguagePairError, UnknownModelError
from dragoman.language import specificity, translates
from service.options import RequestOptions
from service.queue.mailbox import Mailbox, Reservation
from service.queue.result_cache import ResultCache
from service.segment import Segment
from service.text.translator import Translator


class Intake(Protocol):
    """Where the segments of a call go: a mailbox, or what stands before it."""

    @property
    def portion_source_tokens(self) -> int:
        """Source tokens of segments that should come together, where there are many; one segment may have more."""

    def precheck(self, options: RequestOptions, text_bytes: int) -> None:
        """Refuse a request that has no prospects, by the size of its texts alone; raises a DragomanError.

        Args:
            options: of the request.
            text_bytes: of its texts, in UTF-8.
        """

    def reserve(self, options: RequestOptions, text_bytes: int) -> AbstractContextManager[Reservation]:
        """Count texts that have been let in as waiting of their client, until they have come or the call ends.

        Args:
            options: of the call.
            text_bytes: of its texts, in UTF-8.
        """

    def submit(self, segments: Sequence[Segment], *, let_in: bool = False) -> None:
        """Take all segments, or none; raises a DragomanError for none.

        Args:
            segments: of one client and priority.
            let_in: whether their call has been let in already: then they need room only in the queue as it is.
        """

    def cancel(self, segments: Iterable[Segment]) -> None:
        """Withdraw segments; `on_progress` is not called for them any more."""


@dataclass(eq=False)
class ServedModel:
    """One model: what it is, what turns text into its segments, and where they go.

    Attributes:
        manifest: of its bundle.
        translator: from text to segments and back.
        mailbox: of its engine.
        results: what stands before the mailbox; None: nothing is kept or shared.
    """

    manifest: Manifest
    translator: Translator
    mailbox: Mailbox
    results: ResultCache | None = None
    _holders: int = field(default=0, init=False)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the model, though it may be served no more: a call has chosen it and will bring segments."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1

    @property
    def busy(self) -> bool:
        """Whether segments are on their way to it, wait for it or run on it."""
        return bool(self._holders or self.mailbox.unfinished or (self.results and self.results.flights))

    def close(self) -> None:
        """Refuse segments from now on, and forget all results."""
        self.mailbox.close()
        if self.results is not None:
            self.results.clear()

    @property
    def intake(self) -> Intake:
        """Where the segments of a call go."""
        return self.mailbox if self.results is None else self.results


class Catalog:
    """All served models, ordered by name."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._models = sorted(models, key=lambda model: model.manifest.name)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models)

    def choose(self, name: str, source: str, target: str) -> ServedModel:
        """Find the model of a request.

        Args:
            name: its name, or "" to choose by the languages: then the closest match, else the first by name.
            source: BCP-47 code; "" only with a name: then any.
            target: as `source`.

        Raises:
            UnknownModelError: no model has the name.
            UnknownLanguagePairError: the named model, or every model, is for other languages.
        """
        candidates = [self._named(name)] if name else self._models
        matching = [model for model in candidates if translates(model.manifest, source, target)]
        if not matching:
            raise UnknownLanguagePairError(
                f"no translation from {source or 'any language'!r} to {target or 'any language'!r}; "
                f"{'the model' if name else 'the server'} has {', '.join(map(_pair, candidates))}",
                metadata={"source_language_code": source, "target_language_code": target, "model": name},
            )
        return max(matching, key=lambda model: specificity(model.manifest))

    def _named(self, name: str) -> ServedModel:
        for model in self._models:
            if model.manifest.name == name:
                return model
        names = ", ".join(model.manifest.name for model in self._models)
        raise UnknownModelError(f"no model {name[:64]!r}; there are: {names}", metadata={"model": name})


def _pair(model: ServedModel) -> str:
    return f"{model.manifest.source_language} to {model.manifest.target_language}"
