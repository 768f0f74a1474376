"""The languages of a model, and how they are marked: ids around a source, ids before a translation."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dragoman import language
from dragoman.errors import DataError

_MOST_LANGUAGES: Final = 1_000
_MOST_IDS: Final = 32  # in one field
_ids = Field(default=(), max_length=_MOST_IDS)

Code = Annotated[str, Field(pattern=language.PATTERN)]
Id = Annotated[int, Field(ge=0, le=2**24)]


class LanguageMarks(BaseModel):
    """The marks for one of a model's languages.

    A source consists of `source_prefix`, `target_tag` of the target language, text, end of sentence, `source_suffix`.
    Its translation begins with `start_id` and `target_prefix` of the target language.

    Attributes:
        aliases: other codes for the language in requests, such as "deu_Latn".
        source_prefix: ids before a source in this language.
        source_suffix: ids after a source in this language.
        target_tag: ids before a source that is translated into this language.
        target_prefix: forced first ids of a translation into this language.
        start_id: start id of a translation into this language; None: the start id of the model.
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
    """The languages of one side by code and alias in lower case, since every request looks some up."""

    codes: Mapping[str, str]
    aliases: Mapping[str, str]


class Languages(BaseModel):
    """The language pairs of a model: each source with each target, except the same language.

    Saved as ``languages.json`` of a checkpoint, and in the manifest of a bundle.

    Attributes:
        sources: BCP-47 codes.
        targets: BCP-47 codes.
        marks: the marks by code; a language without marks has no entry.
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
        """Make the languages of a model for one pair, without marks."""
        return cls(sources=(source,), targets=(target,))

    @property
    def is_pair(self) -> bool:
        """Whether there is one source and one target."""
        return len(self.sources) == len(self.targets) == 1

    def of(self, code: str) -> LanguageMarks:
        """Give the marks of one of the model's own codes; empty marks if the code has no entry."""
        return self.marks.get(code, _NO_MARKS)

    def source(self, asked: str) -> str | None:
        """Find the source language that serves a requested one, by code or alias; None if none does."""
        return _find(self._sources, asked)

    def target(self, asked: str) -> str | None:
        """Find the target language that serves a requested one, by code or alias; None if none does."""
        return _find(self._targets, asked)

    def told(self, source: str, target: str) -> tuple[str, str]:
        """Find the languages for the arguments of a command.

        Args:
            source: as for :meth:`source`; "": allowed if the model need not know the source language.
            target: as for :meth:`target`; "": the only target.

        Returns:
            The model's own codes; "" for a source language that the model need not know.

        Raises:
            DataError: there is no such language, or there are several and none is given.
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
        """Whether the model must know the language of a source."""
        return len({(self.of(code).source_prefix, self.of(code).source_suffix) for code in self.sources}) > 1

    @property
    def longest_source_marks(self) -> int:
        """Count the marks around a text: the maximum over all languages."""
        around = max(len(self.of(code).source_prefix) + len(self.of(code).source_suffix) for code in self.sources)
        return around + max(len(self.of(code).target_tag) for code in self.targets)

    @property
    def longest_target_prefix(self) -> int:
        """Count the forced first ids of a translation: the maximum over all languages."""
        return max(len(self.of(code).target_prefix) for code in self.targets)


def _find(side: _Side, asked: str) -> str | None:
    if (named := side.aliases.get(asked.lower())) is not None:
        return named
    return language.closest(side.codes, asked) if not asked or language.is_code(asked) else None
