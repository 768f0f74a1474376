"""The limits of the glossary of a request."""

from collections.abc import Iterator, Sequence
from typing import Final

from dragoman.errors import FieldViolation
from dragoman.glossary import MAX_FORMS, GlossaryEntry, crowded, wrong_term

# For one call: sorting this many before admission takes a millisecond.
MAX_ENTRIES: Final = 1_000
MAX_NAMES: Final = 16


def bad_glossary(entries: Sequence[GlossaryEntry], names: Sequence[str]) -> Iterator[FieldViolation]:
    """Find errors in the glossary of a request: in its own entries, and in the number of stored ones that it names."""
    for field, count, most in (("entries", len(entries), MAX_ENTRIES), ("names", len(names), MAX_NAMES)):
        if count > most:
            yield FieldViolation(f"options.glossary.{field}", f"must hold at most {most}, holds {count}")
    forms_of = dict(crowded(entries[:MAX_ENTRIES]))
    for place, entry in enumerate(entries[:MAX_ENTRIES]):
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
