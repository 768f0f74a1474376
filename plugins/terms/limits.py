"""The limits of the glossary of a request."""

from collections.abc import Iterator
from typing import Final

from dragoman.errors import FieldViolation
from dragoman.glossary import MAX_CALL_ENTRIES, MAX_FORMS, GlossaryEntry, crowded, wrong_term
from dragoman.v1 import translation_pb2 as pb

MAX_NAMES: Final = 16


def bad_glossary(glossary: pb.Glossary) -> Iterator[FieldViolation]:
    """Find errors in the glossary of a request: in its own entries, and in the number of stored ones that it names."""
    counts = (("entries", len(glossary.entries), MAX_CALL_ENTRIES), ("names", len(glossary.names), MAX_NAMES))
    for field, count, most in counts:
        if count > most:
            yield FieldViolation(f"options.glossary.{field}", f"must hold at most {most}, holds {count}")
    entries = list(map(entry_of, glossary.entries[:MAX_CALL_ENTRIES]))  # all of any number would hold the event loop up
    forms_of = dict(crowded(entries))
    for place, entry in enumerate(entries):
        field = f"options.glossary.entries[{place}]"
        if wrong := wrong_term(entry.source_term):
            yield FieldViolation(f"{field}.source_term", wrong)
        if len(entry.target_terms) > MAX_FORMS:
            yield FieldViolation(
                f"{field}.target_terms", f"must hold at most {MAX_FORMS}, holds {len(entry.target_terms)}"
            )
        elif place in forms_of:
            yield FieldViolation(
                f"{field}.target_terms",
                f"must be at most {MAX_FORMS} together with those of the same term before, are {forms_of[place]}",
            )
        for number, term in enumerate(entry.target_terms[:MAX_FORMS]):
            if wrong := wrong_term(term):
                yield FieldViolation(f"{field}.target_terms[{number}]", wrong)


def entry_of(entry: pb.GlossaryEntry) -> GlossaryEntry:
    """Give an entry of a request."""
    return GlossaryEntry(entry.source_term, tuple(entry.target_terms), entry.ignore_case)
