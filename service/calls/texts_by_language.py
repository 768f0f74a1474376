"""The texts of a call by their languages, once these are detected; knows no protocol."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import DragomanError, UnknownLanguagePairError
from dragoman.language import several
from service.text.detection import Guess, most_frequent


class TextsByLanguage(NamedTuple):
    """The texts of a call by their languages.

    Attributes:
        detected: the language of each text; None where it could not be detected.
        texts: numbers of the texts that can be translated, by source language.
        refused: errors of the other texts, by their numbers.
    """

    detected: Sequence[Guess | None]
    texts: Mapping[str, Sequence[int]]
    refused: Mapping[int, DragomanError]


def group_by_language(
    detected: Sequence[Guess | None],
    sources: Sequence[str],
    target: str,
    model: str,
    bad: Mapping[int, DragomanError],
    *,
    all_or_nothing: bool = False,
) -> TextsByLanguage:
    """Choose the source language of each text: a text without a detected language gets that of most others.

    Args:
        sources: the languages from which texts can be translated, at least one.
        target: the wanted target language; "": the target language of the model.
        model: the requested model; "": any.
        bad: errors of the texts that cannot be translated from any language, by their numbers.
        all_or_nothing: whether a language that is not in `sources` is an error of the whole call.

    Raises:
        UnknownLanguagePairError: a language is an error of the whole call; the error names all texts like that.
    """
    default = most_frequent(detected, sources, sources[0])
    texts: dict[str, list[int]] = {}
    unserved: dict[int, UnknownLanguagePairError] = {}
    for number, guess in enumerate(detected):
        if number in bad:
            continue
        if guess and guess.language not in sources:
            unserved[number] = _unserved(number, guess, sources, target, model)
        else:
            texts.setdefault(guess.language if guess else default, []).append(number)
    if unserved and all_or_nothing:
        raise _all(list(unserved.values()))
    return TextsByLanguage(detected, texts, {**bad, **unserved})


def _unserved(number: int, guess: Guess, sources: Sequence[str], target: str, model: str) -> UnknownLanguagePairError:
    """Make the error of a text in a language that no model translates as requested."""
    description = (
        f"is in {guess.language!r}, as detected (confidence {guess.confidence:.2f}); there is translation"
        f"{f' by model {model}' if model else ''}{f' into {target!r}' if target else ''} from {several(sources)}"
    )
    return UnknownLanguagePairError(
        f"contents[{number}]: {description}",
        metadata={"source_language_code": guess.language, "target_language_code": target, "model": model},
        violations=[(f"contents[{number}]", description)],
    )


def _all(errors: Sequence[UnknownLanguagePairError]) -> UnknownLanguagePairError:
    """Make the error of a call from the errors of its texts, at least one."""
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    violations = [violation for error in errors for violation in error.violations]
    return UnknownLanguagePairError(f"{first.message}{more}", metadata=first.metadata, violations=violations)
