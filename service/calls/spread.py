"""The texts of a call by their languages, once these are detected; knows no wire."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import DragomanError, UnknownLanguagePairError
from dragoman.language import several
from service.text.detection import Guess, most_frequent


class Spread(NamedTuple):
    """The texts of a call by their languages.

    Attributes:
        detected: the language of each text; None for one that says nothing.
        texts: the numbers of those that can be translated, by the language from which they are to be.
        refused: the others, and why.
    """

    detected: Sequence[Guess | None]
    texts: Mapping[str, Sequence[int]]
    refused: Mapping[int, DragomanError]


def spread(
    detected: Sequence[Guess | None],
    sources: Sequence[str],
    target: str,
    model: str,
    bad: Mapping[int, DragomanError],
    *,
    all_or_nothing: bool = False,
) -> Spread:
    """Say from which languages texts are to be translated: one that says nothing, from that of most others.

    Args:
        detected: the language of each text; None for one that says nothing.
        sources: the languages from which they can be translated, at least one.
        target: the language that is wanted; "": that of the model.
        model: that is asked for; "": any.
        bad: texts that cannot be translated from any, by their numbers.
        all_or_nothing: whether a language that is none of `sources` is an error of all.

    Raises:
        UnknownLanguagePairError: that is so, and there is one; names all such texts.
    """
    default = most_frequent((guess for guess in detected if guess and guess.language in sources), sources[0])
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
    return Spread(detected, texts, {**bad, **unserved})


def _unserved(number: int, guess: Guess, sources: Sequence[str], target: str, model: str) -> UnknownLanguagePairError:
    """Make the error of a text in a language that no model translates as it is asked."""
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
    """Make the error of a call of those of its texts, at least one."""
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    violations = [violation for error in errors for violation in error.violations]
    return UnknownLanguagePairError(f"{first.message}{more}", metadata=first.metadata, violations=violations)
