"""The limits of texts, beams, sampling and prefixes, and the errors of values beyond them; knows no protocol."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dragoman.errors import DragomanError, FieldViolation, InvalidRequestError
from service.failures import invalid
from service.options import MAX_BEAM_SIZE, MAX_LENGTH_PENALTY, MAX_TEMPERATURE, MIN_TEMPERATURE, Sampling
from service.settings import Settings
from service.text.translator import Translator

# One or two sentences: a prefix is encoded before its request is admitted.
MAX_TARGET_PREFIX_BYTES: Final = 4_096


def bad_texts(contents: Iterable[tuple[int, str]], settings: Settings) -> dict[int, InvalidRequestError]:
    """Find the texts that are too large.

    Args:
        contents: the texts of one call, each after its number.

    Returns:
        The error of each bad text, by its number.
    """
    limit_bytes, bad = settings.max_text_bytes, {}
    for index, text in contents:
        # No character takes more than 4 bytes: most texts need no encoding to be measured.
        if len(text) * 4 > limit_bytes and (size := len(text.encode())) > limit_bytes:
            violation = FieldViolation(f"contents[{index}]", f"must be at most {limit_bytes} bytes, is {size}")
            bad[index] = invalid([violation])
    return bad


def bad_beam(
    beam_size: int, length_penalty: float, alternatives: int, slots: int, *, sampled: bool = False
) -> Iterator[FieldViolation]:
    """Find the errors in the options of a beam search.

    Args:
        beam_size: the requested beam size; 0: none.
        slots: slots of the model, each of which holds a hypothesis.
        sampled: whether tokens are sampled.
    """
    limit = 1 if sampled else min(MAX_BEAM_SIZE, slots)
    why = " with options.sampling" if sampled else ", the number of slots" if slots < MAX_BEAM_SIZE else ""
    most = f"must be at most {limit}{why}"
    if beam_size > limit:
        yield FieldViolation("options.beam_size", f"{most}, is {beam_size}")
    if beam_size and alternatives > beam_size:
        rule = f"must be at most beam_size, which is {beam_size}, is {alternatives}"
        yield FieldViolation("options.alternatives", rule)
    elif alternatives > limit:
        yield FieldViolation("options.alternatives", f"{most}, is {alternatives}")
    if not (math.isfinite(length_penalty) and abs(length_penalty) <= MAX_LENGTH_PENALTY):
        bound = f"{MAX_LENGTH_PENALTY:g}"
        yield FieldViolation("options.length_penalty", f"must be -{bound} to {bound}, is {_exactly(length_penalty)}")


def bad_sampling(sampling: Sampling) -> Iterator[FieldViolation]:
    """Find the errors in the options of sampling."""
    temperature, top_p = sampling.temperature, sampling.top_p
    if not MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE:
        yield FieldViolation(
            "options.sampling.temperature",
            f"must be {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}, is {_exactly(temperature)}; "
            "greedy decoding draws nothing",
        )
    if not 0 < top_p <= 1:
        yield FieldViolation("options.sampling.top_p", f"must be more than 0 and at most 1, is {_exactly(top_p)}")


def _exactly(number: float) -> str:
    """Write a number exactly: a number just above a limit must not look like the limit."""
    return repr(number).removesuffix(".0")


def bad_prefix(target_prefix: str, translator: Translator, limit_tokens: int) -> Iterator[FieldViolation]:
    """Find the errors in the prefix of translations."""
    field = "options.target_prefix"
    if not target_prefix:
        return
    if (size := len(target_prefix.encode())) > MAX_TARGET_PREFIX_BYTES:
        yield FieldViolation(field, f"must be at most {MAX_TARGET_PREFIX_BYTES} bytes, is {size}")
    elif (tokens := len(translator.prefix_ids(target_prefix))) >= limit_tokens:
        yield FieldViolation(field, f"must have fewer tokens than a translation may, {limit_tokens}, has {tokens}")
    elif not translator.is_writable(target_prefix):
        yield FieldViolation(
            field,
            "must read the same in the pieces of the model: no characters that it does not know, and no blanks at the "
            "ends or several in a row",
        )


def refuse_any(errors: Sequence[DragomanError]) -> None:
    """Refuse a call as a whole where some of its texts are bad.

    Raises:
        InvalidRequestError: the error names all bad texts.
        DragomanError: the first error of another kind.
    """
    for error in errors:
        if not error.violations:
            raise error
    raise_if_any([violation for error in errors for violation in error.violations])


def raise_if_any(violations: Sequence[FieldViolation]) -> None:
    """Refuse a request where at least one field is bad.

    Raises:
        InvalidRequestError: the error names all bad fields.
    """
    if violations:
        raise invalid(violations)
