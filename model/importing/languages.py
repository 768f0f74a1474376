"""The languages of an imported model, from its folder and from the user."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from dragoman.errors import DataError
from dragoman.invalid import describe
from dragoman.language_marks import LanguageMarks, Languages
from model.importing import codes
from model.importing.codes import Code
from model.importing.family import Wanted

_SHOWN: Final = 8  # languages in a message


def make(
    sources: Sequence[str], targets: Sequence[str], marks: Mapping[str, LanguageMarks], wanted: Wanted
) -> tuple[Languages, list[str]]:
    """Make the languages of a model.

    Args:
        sources: the model's own codes of its source languages.
        targets: the model's own codes of its target languages.
        marks: the marks, by these codes; aliases are added.
        wanted: restricts the languages.

    Returns:
        The languages, and a warning about codes that are no language.

    Raises:
        DataError: a requested language does not exist, or no language is left.
    """
    known = codes.known(dict.fromkeys([*sources, *targets]))
    # BCP-47 codes given by the user are kept as they are.
    known |= {code: Code(code, ()) for code in (*wanted.sources, *wanted.targets) if code in known and "-" in code}
    left_out = [code for code in dict.fromkeys([*sources, *targets]) if code not in known]
    chosen_sources = restrict([code for code in sources if code in known], known, wanted.sources, wanted.languages)
    chosen_targets = restrict([code for code in targets if code in known], known, wanted.targets, wanted.languages)
    all_marks = {}
    for code in dict.fromkeys([*chosen_sources, *chosen_targets]):
        entry = marks.get(code, LanguageMarks())
        entry = entry.model_copy(update={"aliases": (*known[code].aliases, *entry.aliases)})
        if entry != LanguageMarks():
            all_marks[known[code].tag] = entry
    try:
        languages = Languages(
            sources=tuple(known[code].tag for code in chosen_sources),
            targets=tuple(known[code].tag for code in chosen_targets),
            marks=all_marks,
        )
    except ValidationError as error:
        raise DataError(f"languages: {describe(error)}") from error
    warnings = [f"left out, as no codes of languages, or twice the same: {listed(left_out)}"] if left_out else []
    return languages, warnings


def of_name(name: str) -> tuple[list[str], list[str]]:
    """Read the languages from the name of a model such as opus-mt-en-de, or of a file such as model.ende.intgemm.bin.

    Returns:
        ([], []) if the name contains none.
    """
    if of_file := re.match(r"model\.([a-z_-]+)\.", name, re.IGNORECASE):
        both = of_file[1]
        # Codes have two or three letters, and possibly a script; in a pair with a script, the other side is English.
        halves = [(both[:cut], both[cut:]) for cut in (2, len(both) - 2, 3)]
        return next((([one], [two]) for one, two in halves if all(map(codes.is_language, (one, two)))), ([], []))
    found = re.search(r"opus-?mt-(?:.*-)?([A-Za-z_+]+)-([A-Za-z_+]+)$", name)
    return (split(found[1]), split(found[2])) if found else ([], [])


def split(text: str) -> list[str]:
    """Split the languages of one side, such as "deu+fra" or "cat_oci_spa"; empty for the name of a language group."""
    if codes.is_language(text):
        return [text]
    parts = [part for part in re.split(r"[+_]", text) if part]
    return parts if len(parts) > 1 and all(map(codes.is_language, parts)) else []


def restrict(
    there: Sequence[str], known: Mapping[str, Code], one_side: Sequence[str], both: Sequence[str]
) -> list[str]:
    """Restrict one side's languages to the requested ones, in the order of the model."""
    kept = list(there)
    if one_side:
        kept = [find(asked, kept, known) for asked in one_side]
    if both:
        kept = [code for code in kept if code in {find(asked, known, known) for asked in both}]
        if not kept:
            raise DataError(f"--languages {','.join(both)} leaves none; there are {listed(_tags(there, known))}")
    return list(dict.fromkeys(kept))


def find(asked: str, there: Iterable[str], known: Mapping[str, Code]) -> str:
    """Find a requested language by its BCP-47 code, or by the model's own code.

    Raises:
        DataError: the language does not exist.
    """
    wanted = asked.lower()
    there = list(there)
    for code in there:
        names = (known[code].tag, code, *known[code].aliases)
        if wanted in map(str.lower, names):
            return code
    raise DataError(f"no language {asked!r} in this model; there are {listed(_tags(there, known))}")


def _tags(there: Iterable[str], known: Mapping[str, Code]) -> list[str]:
    return [known[code].tag for code in there]


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """List names for a message; of many only the first ones."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
