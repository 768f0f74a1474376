"""The terms of a request: whether they are as they may be, and found among the stored glossaries."""

from collections.abc import Iterator

from dragoman.errors import FieldViolation
from dragoman.glossary import GlossaryEntry
from dragoman.v1 import translation_pb2 as pb
from service import terms
from service.calls.limits import bad_glossary, bad_terms_beside, raise_if_any
from service.registry.catalog import Choice
from service.registry.glossaries import Glossaries
from service.terms import Terms


def bad_terms(options: pb.TranslateOptions, chosen: Choice) -> Iterator[FieldViolation]:
    """Find what is wrong with the glossary of a request, the stored ones apart."""
    glossary = options.glossary
    is_given = bool(glossary.entries or glossary.names)
    yield from bad_glossary(list(map(_entry, glossary.entries)), glossary.names, "options.glossary.")
    if options.HasField("sampling"):
        yield from bad_terms_beside(glossary=is_given, placeholders=options.protect_placeholders, prefix="options.")
    if chosen.pivot and is_given:
        yield FieldViolation(
            "options.glossary",
            f"must be empty where two models translate: the server has no model from {chosen.pivot.source} to "
            f"{chosen.target}, and translates over {chosen.source}",
        )


def terms_of(options: pb.TranslateOptions, chosen: Choice, glossaries: Glossaries, prefix: str) -> Terms | None:
    """Put together all that is to have a given translation.

    Returns:
        The terms; None where nothing is asked for.

    Raises:
        UnknownGlossaryError: no stored glossary has a given name.
        InvalidRequestError: one is for other languages.
    """
    glossary = options.glossary
    stored = [glossaries.find(name) for name in glossary.names]
    violations = [
        FieldViolation(f"{prefix}options.glossary.names[{place}]", f"must be for these languages, is for {languages}")
        for place, each in enumerate(stored)
        if (languages := each.misfit(chosen.model.manifest, chosen.source, chosen.target))
    ]
    raise_if_any(violations)
    indexes = [each.terms for each in stored]
    if glossary.entries:
        indexes.insert(0, terms.index(map(_entry, glossary.entries)))
    if not (indexes or options.protect_placeholders):
        return None
    return terms.terms_of(indexes, protects_placeholders=options.protect_placeholders)


def _entry(entry: pb.GlossaryEntry) -> GlossaryEntry:
    return GlossaryEntry(entry.source_term, tuple(entry.target_terms), entry.ignore_case)
