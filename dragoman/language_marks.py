"""The languages of a model, and how it is told of them: ids around a source, ids before a translation."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dragoman import language
from dragoman.errors import DataError

_MOST_LANGUAGES: Final = 1_000
_MOST_IDS: Final = 32  # in one place
_ids = Field(default=(), max_length=_MOST_IDS)

Code = Annotated[str, Field(pattern=language.PATTERN)]
Id = Annotated[int, Field(ge=0, le=2**24)]


class LanguageMarks(BaseModel):
    """What a model is given for one of its languages.

    A source is read as `source_prefix`, `target_tag` of the target language, text, end of sentence, `source_suffix`.
    Its translation begins with `start_id` and `target_prefix` of the target language.

    Attributes:
        aliases: other codes under which a request may name the language, such as "deu_Latn".
        source_prefix: of a source in this language.
        source_suffix: likewise.
        target_tag: of a source that is translated into this language.
        target_prefix: ids that the decoder is made to choose first.
        start_id: from which a translation into this language begins; None: from that of the model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    aliases: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = Field(default=(), max_length=_MOST_IDS)
    source_prefix: tuple[Id, ...] = _ids
    source_suffix: tuple[Id, ...] = _ids
    target_tag: tuple[Id, ...] = _ids
    target_prefix: tuple[Id, ...] = _ids
    start_id: Id | None = None


_NO_MARKS: Final = LanguageMarks()


class _Side(NamedTuple):
    """The languages of one side, in lower case; every request looks some up."""

    codes: Mapping[str, str]
    aliases: Mapping[str, str]


class Languages(BaseModel):
    """What a model translates: from each source into each target, but not into the same language.

    Saved as ``languages.json`` of a checkpoint, and in the manifest of a bundle.

    Attributes:
        sources: BCP-47 codes.
        targets: BCP-47 codes.
        marks: by code; a language that needs none has no entry.
        source_ends: whether a source ends with the end-of-sentence id, as nearly all models expect.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[Code, ...] = Field(min_length=1, max_length=_MOST_LANGUAGES)
    targets: tuple[Code, ...] = Field(min_length=1, max_length=_MOST_LANGUAGES)
    marks: dict[Code, LanguageMarks] = Field(default_factory=dict, max_length=2 * _MOST_LANGUAGES)
    source_ends: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("sources", "targets"):
            codes = [code.lower() for code in getattr(self, name)]
            if twice := [code for code in codes if codes.count(code) > 1]:
                raise ValueError(f"{name}: {twice[0]} is there twice")
        if unknown := self.marks.keys() - {*self.sources, *self.targets}:
            raise ValueError(f"marks: {min(unknown)} is neither a source nor a target")
        owners: dict[str, str] = {}
        for code, marks in self.marks.items():
            for alias in marks.aliases:
                if (owner := owners.setdefault(alias.lower(), code)) != code:
                    raise ValueError(f"marks: the alias {alias!r} is of {owner} and of {code}")
        return self

    @classmethod
    def pair(cls, source: str, target: str) -> "Languages":
        """Make those of a model for one language pair, which needs to be told nothing."""
        return cls(sources=(source,), targets=(target,))

    @property
    def is_pair(self) -> bool:
        """Whether there is one source and one target."""
        return len(self.sources) == len(self.targets) == 1

    def of(self, code: str) -> LanguageMarks:
        """Give the marks of a language by its own code; none where it has no entry."""
        return self.marks.get(code, _NO_MARKS)

    def source(self, asked: str) -> str | None:
        """Find the source language that serves an asked one, by code or alias; None where there is none."""
        return _find(self._sources, asked)

    def target(self, asked: str) -> str | None:
        """Find the target language that serves an asked one, by code or alias; None where there is none."""
        return _find(self._targets, asked)

    def told(self, source: str, target: str) -> tuple[str, str]:
        """Find the languages that a command asks for.

        Args:
            source: as for :meth:`source`; "": any, where the model need not be told.
            target: as for :meth:`target`; "": the only one.

        Returns:
            Their own codes; "" for a source that it is not told.

        Raises:
            DataError: there is no such language, or there are several and none is asked for.
        """
        found = []
        for side, asked, code, codes, needed in (
            ("source", source, self.source(source), self.sources, self.needs_source),
            ("target", target, self.target(target), self.targets, True),
        ):
            if code is None and (asked or needed):
                wrong = f"is {asked}" if asked else "is needed"
                raise DataError(f"the {side} language {wrong}: the model has {', '.join(codes)}")
            found.append(code or "")
        return found[0], found[1]

    @cached_property
    def _sources(self) -> _Side:
        return self._side(self.sources)

    @cached_property
    def _targets(self) -> _Side:
        return self._side(self.targets)

    def _side(self, served: tuple[str, ...]) -> _Side:
        return _Side(
            language.by_code(served), {alias.lower(): code for code in served for alias in self.of(code).aliases}
        )

    @cached_property
    def needs_source(self) -> bool:
        """Whether the model has to be told which language a source is in."""
        return len({(self.of(code).source_prefix, self.of(code).source_suffix) for code in self.sources}) > 1

    @property
    def longest_source_marks(self) -> int:
        """Count the tokens that stand around a text at most."""
        around = max(len(self.of(code).source_prefix) + len(self.of(code).source_suffix) for code in self.sources)
        return around + max(len(self.of(code).target_tag) for code in self.targets)

    @property
    def longest_target_prefix(self) -> int:
        """Count the tokens that a translation is made to begin with at most."""
        return max(len(self.of(code).target_prefix) for code in self.targets)


def _find(side: _Side, asked: str) -> str | None:
    if (named := side.aliases.get(asked.lower())) is not None:
        return named
    return language.closest(side.codes, asked) if not asked or language.is_code(asked) else None
