"""The limits of texts, and the error of what is beyond them; knows no wire."""

from collections.abc import Iterable, Sequence

from dragoman.errors import DragomanError, FieldViolation, InvalidRequestError
from service.settings import Settings


def bad_texts(contents: Iterable[str], settings: Settings, first: int = 0) -> dict[int, InvalidRequestError]:
    """Find the texts that are too large.

    Args:
        contents: texts of one call.
        settings: the limits.
        first: the number of the first of them within the call.

    Returns:
        The error of each bad text, by its number.
    """
    limit_bytes, bad = settings.max_text_bytes, {}
    for index, text in enumerate(contents, first):
        # No character takes more than 4 bytes: most texts need no encoding to be measured.
        if len(text) * 4 > limit_bytes and (size := len(text.encode())) > limit_bytes:
            violation = FieldViolation(f"contents[{index}]", f"must be at most {limit_bytes} bytes, is {size}")
            bad[index] = invalid([violation])
    return bad


def refuse_any(errors: Sequence[DragomanError]) -> None:
    """Refuse a call as a whole where some of its texts are bad.

    Raises:
        InvalidRequestError: names all bad texts.
        DragomanError: the first error that is another.
    """
    for error in errors:
        if not error.violations:
            raise error
    raise_if_any([violation for error in errors for violation in error.violations])


def raise_if_any(violations: Sequence[FieldViolation]) -> None:
    """Refuse a request where at least one field is bad.

    Raises:
        InvalidRequestError: names all of them.
    """
    if violations:
        raise invalid(violations)


def invalid(violations: Sequence[FieldViolation]) -> InvalidRequestError:
    """Make the error of bad fields, at least one."""
    first = violations[0]
    more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    return InvalidRequestError(f"{first.field}: {first.description}{more}", violations=violations)
