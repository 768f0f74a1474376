"""The terms of calls, and stored glossaries that calls may name: files in a folder, read again when they change."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from dragoman import language
from dragoman.bundle import Manifest
from dragoman.errors import DataError, FieldViolation, UnknownGlossaryError
from dragoman.glossary import SUFFIXES, GlossaryFile
from dragoman.v1 import translation_pb2 as pb
from plugins.file_identity import FileIdentity
from plugins.terms import placeholders
from plugins.terms.finding import Index
from plugins.terms.limits import bad_glossary, entry_of
from plugins.terms.terms import Terms
from service.calls.limits import raise_if_any
from service.handlers.glossaries import Glossaries
from service.registry.catalog import Choice
from service.settings import SettingsError

_QUOTED: Final = 64  # maximum characters of a name in a message

_log = structlog.get_logger()


class StoredGlossary(NamedTuple):
    """One glossary.

    Attributes:
        name: the name of its file, without the last suffix.
        source_language: BCP-47 code; "": any language.
        target_language: BCP-47 code; "": any language.
        entries: how many terms the file has.
        terms: the terms, indexed.
    """

    name: str
    source_language: str
    target_language: str
    entries: int
    terms: Index

    @classmethod
    def read(cls, file: Path) -> "StoredGlossary":
        """Read a file.

        Raises:
            DataError: the file is unreadable or invalid.
        """
        content = GlossaryFile.read(file)
        entries = content.entries
        return cls(file.stem, content.source_language, content.target_language, len(entries), Index(entries))

    def misfit(self, manifest: Manifest, source: str, target: str) -> str:
        """Name the languages of the glossary, if these do not fit the request; "" if they fit.

        Args:
            source: a source language of the model; "" if the model need not know it.
            target: a target language of the model; "": the only one.
        """
        languages = manifest.languages
        source, target = source or languages.source("") or "", target or languages.target("") or ""
        fits = _fits(self.source_language, source, languages.source(self.source_language)) and _fits(
            self.target_language, target, languages.target(self.target_language)
        )
        return "" if fits else language.pair(self.source_language, self.target_language)


def _fits(own: str, asked: str, served: str | None) -> bool:
    """Tell whether a language of a glossary is the requested one, or a variant of it, or the other way round."""
    return not own or not asked or asked in (own, served) or language.covers(own, asked)


class StoredGlossaries(Glossaries):
    """The glossaries of a folder, by name; if a file becomes invalid, its last valid content stays.

    Lives on the event loop; only :meth:`refresh` may run on another thread, one call at a time.
    """

    def __init__(self, folder: str = "") -> None:
        """Begin without glossaries.

        Args:
            folder: the path of their folder; "": no glossaries.

        Raises:
            SettingsError: the folder does not exist.
        """
        if folder and not Path(folder).is_dir():
            raise SettingsError(f"DRAGOMAN_GLOSSARIES (--glossaries): {folder}: no such folder")
        self._folder = folder
        self._seen: dict[Path, FileIdentity] = {}  # the files as they were last handled
        self._refused: set[Path] = set()
        self._stored: dict[Path, StoredGlossary] = {}  # replaced, never changed, since the event loop reads it

    def __iter__(self) -> Iterator[StoredGlossary]:
        return iter(sorted(self._stored.values(), key=lambda stored: stored.name))

    def find(self, name: str) -> StoredGlossary:
        """Find a glossary.

        Raises:
            UnknownGlossaryError: no glossary has this name.
        """
        for stored in self._stored.values():
            if stored.name == name:
                return stored
        raise unknown(name, [stored.name for stored in self])

    def bad_terms(self, options: pb.TranslateOptions, chosen: Choice) -> Iterator[FieldViolation]:
        """Find errors in the terms of a request, except in its names of stored glossaries."""
        glossary = options.glossary
        asked = {
            "glossary": bool(glossary.entries or glossary.names),
            "protect_placeholders": options.protect_placeholders,
        }
        yield from bad_glossary(glossary)
        if options.HasField("sampling"):  # nothing ensures that drawn tokens contain the terms
            for field in filter(asked.get, asked):
                yield FieldViolation(f"options.{field}", "must be left out where options.sampling is given")
        if chosen.pivot and asked["glossary"]:
            yield FieldViolation(
                "options.glossary",
                f"must be empty where two models translate: the server has no model from {chosen.pivot.source} to "
                f"{chosen.target}, and translates over {chosen.source}",
            )

    def terms_of(self, options: pb.TranslateOptions, chosen: Choice, prefix: str, others: list[Choice]) -> Terms | None:
        """Combine all terms and kept parts of a request; see :class:`Glossaries`."""
        glossary = options.glossary
        stored = [self.find(name) for name in glossary.names]
        misfits = [each.misfit(chosen.model.manifest, chosen.source, chosen.target) for each in stored]
        asked = language.pair(chosen.source, chosen.target)
        # Where languages are detected, a glossary for another language that a text may have is left out for this one.
        direct = [other for other in others if not other.pivot]
        raise_if_any(
            [
                FieldViolation(
                    f"{prefix}options.glossary.names[{place}]",
                    f"must be for {asked}, {each.name[:_QUOTED]!r} is for {languages}",
                )
                for place, (each, languages) in enumerate(zip(stored, misfits, strict=True))
                if languages and all(each.misfit(to.model.manifest, to.source, to.target) for to in direct)
            ]
        )
        # At the same place the longest term counts, of equal ones that of the first glossary.
        indexes = [each.terms for each, languages in zip(stored, misfits, strict=True) if not languages]
        if glossary.entries:
            indexes.insert(0, Index(map(entry_of, glossary.entries)))
        if not (indexes or options.protect_placeholders):
            return None
        return Terms(indexes, placeholders.find if options.protect_placeholders else None)

    def refresh(self, *, everything: bool = False) -> int:
        """Read new and changed files, and forget removed ones; an invalid file is reported and skipped.

        Args:
            everything: whether unchanged files are read too.

        Returns:
            How many files are invalid, including those reported earlier; 1 if the folder cannot be listed.
        """
        if not self._folder:
            return 0
        try:
            now = _look(Path(self._folder))
        except OSError as error:
            _log.error("the glossaries cannot be listed: those that were read stay", why=str(error))
            return 1
        stored = {path: glossary for path, glossary in self._stored.items() if path in now}
        for path in self._stored.keys() - now.keys():
            _log.info("a glossary is gone", glossary=path.stem)
        # A file may have been refused because of a name that is free now.
        free = {path.stem for path in self._seen.keys() - now.keys()}
        seen = {} if everything else {path: each for path, each in self._seen.items() if path.stem not in free}
        self._refused &= now.keys()
        names = {glossary.name: path for path, glossary in stored.items()}
        for path, identity in now.items():
            if seen.get(path) == identity:
                continue
            self._refused.discard(path)
            try:
                if names.setdefault(path.stem, path) != path:
                    raise DataError(f"{path}: {names[path.stem].name} has the same name")
                stored[path] = StoredGlossary.read(path)
                if structlog.is_configured():  # a command has no log
                    _log.info("glossary read", glossary=path.stem, entries=stored[path].entries)
            except DataError as error:
                self._refused.add(path)
                stays = ": what was read of it before stays" if path in stored else ""
                _log.error(f"a glossary was refused{stays}", why=str(error))
        self._seen = now
        self._stored = stored
        return len(self._refused)


def unknown(name: str, known: Sequence[str]) -> UnknownGlossaryError:
    """Make the error for a glossary that is not stored; it names stored ones, as far as a line has room."""
    there_are = language.several(known) or "none"
    return UnknownGlossaryError(
        f"no glossary {name[:_QUOTED]!r}; there are: {there_are}", metadata={"glossary": name[:_QUOTED]}
    )


def _look(folder: Path) -> dict[Path, FileIdentity]:
    """List the files that may be glossaries, sorted by name, without hidden files."""
    files = (file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith("."))
    found = {}
    for file in sorted(files):
        try:
            found[file] = FileIdentity.of(file)
        except FileNotFoundError:  # the file was removed after listing
            continue
    return found
