"""The models that are served, and which of them a request means."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dragoman.bundle import Manifest
from dragoman.errors import UnknownLanguagePairError, UnknownModelError
from dragoman.language import specificity, translates
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.text.translator import Translator


@dataclass(eq=False)
class ServedModel:
    """One model: what it is, what turns text into its segments, and where they go.

    Attributes:
        manifest: of its bundle.
        translator: from text to segments and back.
        mailbox: of its engine.
        intake: where segments go, which stands before the mailbox.
    """

    manifest: Manifest
    translator: Translator
    mailbox: Mailbox
    intake: Intake
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
        return bool(self._holders or self.mailbox.unfinished or self.intake.unfinished)

    def close(self) -> None:
        """Refuse segments from now on, and forget all results."""
        self.mailbox.close()
        self.intake.clear()


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
