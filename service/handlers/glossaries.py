"""The terms that requests ask for, and the glossaries that are stored for them: none, unless a plugin has some."""

from collections.abc import Callable, Iterator

from dragoman.errors import FieldViolation
from dragoman.v1 import translation_pb2 as pb
from service import plugins
from service.registry.catalog import Choice
from service.settings import SettingsError
from service.terms import Terms


class Glossaries:
    """There are none of both; lives on the event loop but for :meth:`refresh`. A plugin has another one."""

    def refresh(self, *, everything: bool = False) -> int:
        """Read what is new or has changed, or everything, and forget what is gone; for any thread, one at a time.

        Returns:
            How many files are wrong.
        """
        return 0

    def bad_terms(self, options: pb.TranslateOptions, chosen: Choice) -> Iterator[FieldViolation]:
        """Find what is wrong with the terms of a request, apart from the stored glossaries that it names."""
        for field, is_asked in (
            ("glossary", options.HasField("glossary")),
            ("protect_placeholders", options.protect_placeholders),
        ):
            if is_asked:
                yield FieldViolation(f"options.{field}", f"this server has no plugin of {plugins.TERMS}")

    def terms_of(self, options: pb.TranslateOptions, chosen: Choice, prefix: str) -> Terms | None:
        """Put together all that is to have a given translation.

        Args:
            prefix: in front of the names of fields, in errors.

        Returns:
            The terms; None where nothing is asked for.

        Raises:
            UnknownGlossaryError: no stored glossary has a given name.
            InvalidRequestError: one is for other languages.
        """
        return None


def glossaries_of(folder: str = "") -> Glossaries:
    """Choose what finds the terms of requests.

    Args:
        folder: of the stored glossaries; "": there are none.

    Raises:
        SettingsError: there is no such folder, or no plugin can read it.
    """
    make: Callable[[str], Glossaries] | None = plugins.first(plugins.TERMS)
    if make is not None:
        return make(folder)
    if folder:
        raise SettingsError(f"DRAGOMAN_GLOSSARIES (--glossaries): needs a plugin of {plugins.TERMS}")
    return Glossaries()
