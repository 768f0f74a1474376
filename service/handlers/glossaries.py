"""The terms of requests, and the stored glossaries: there are none of both, unless a plugin has them."""

from collections.abc import Callable, Iterator

from dragoman.errors import FieldViolation
from dragoman.v1 import translation_pb2 as pb
from service import plugins
from service.registry.catalog import Choice
from service.settings import SettingsError
from service.terms import Terms


class Glossaries:
    """No terms and no stored glossaries; a plugin has another class. Lives on the event loop except :meth:`refresh`."""

    def refresh(self, *, everything: bool = False) -> int:
        """Read new and changed files, or all, and forget removed files; for any thread, one call at a time.

        Returns:
            The number of invalid files.
        """
        return 0

    def bad_terms(self, options: pb.TranslateOptions, chosen: Choice) -> Iterator[FieldViolation]:
        """Find the errors in the terms of a request, except in the stored glossaries that it names."""
        for field, is_asked in (
            ("glossary", options.HasField("glossary")),
            ("protect_placeholders", options.protect_placeholders),
        ):
            if is_asked:
                yield FieldViolation(f"options.{field}", f"this server has no plugin of {plugins.TERMS}")

    def terms_of(self, options: pb.TranslateOptions, chosen: Choice, prefix: str, others: list[Choice]) -> Terms | None:
        """Collect all terms that have given translations.

        Args:
            prefix: prefix of the names of fields, in errors.
            others: the choices for all languages that a text of the call may have; none without language detection.

        Returns:
            The terms; None where the request has none.

        Raises:
            UnknownGlossaryError: no stored glossary has a given name.
            InvalidRequestError: a stored glossary is for other languages, also than those of `others`.
        """
        return None


def glossaries_of(folder: str = "") -> Glossaries:
    """Make the object that finds the terms of requests.

    Args:
        folder: folder of the stored glossaries; "": there are none.

    Raises:
        SettingsError: there is no such folder, or no plugin can read it.
    """
    make: Callable[[str], Glossaries] | None = plugins.first(plugins.TERMS)
    if make is not None:
        return make(folder)
    if folder:
        raise SettingsError(f"DRAGOMAN_GLOSSARIES (--glossaries): needs a plugin of {plugins.TERMS}")
    return Glossaries()
