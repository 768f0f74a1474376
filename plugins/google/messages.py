"""Conversion between messages of Google's Cloud Translation API v3 and this server; docs/google.md says what differs.

Unsupported fields raise an error that names the field; only `labels` are ignored.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.errors import FieldViolation, InvalidRequestError
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from plugins.google.v3 import translation_service_pb2 as google
from plugins.language_names import name_of
from service.calls.limits import raise_if_any
from service.failures import invalid
from service.handlers.validation import bad_count
from service.settings import Settings
from service.wire import HTML

_PROJECT: Final = "projects/[^/]{1,100}"
_LOCATION: Final = f"{_PROJECT}/locations/[^/]{{1,100}}"
_PARENT: Final = re.compile(f"{_PROJECT}|{_LOCATION}")
_MODEL: Final = re.compile(f"{_LOCATION}/models/(.+)")
_GLOSSARY: Final = re.compile(f"{_LOCATION}/glossaries/(.+)")
_GLOSSARY_FIELD: Final = "glossary_config.glossary"
_OWN_GLOSSARY: Final = re.compile(r"^options\.glossary\b.*")  # the field for which it stands
_GENERAL: Final = frozenset({"general/nmt", "general/translation-llm"})  # stands for any model of the languages
_DETECTION: Final = "language-detection/default"
_UNDETERMINED: Final = "und"  # BCP-47's code for an undetermined language
_QUOTED: Final = 64  # maximum characters of a bad value in a message


def translation_asked(request: google.TranslateTextRequest, settings: Settings) -> pb.TranslateTextRequest:
    """Convert a request for translations.

    Args:
        settings: the limit of texts; texts beyond it are not even copied.

    Returns:
        The request. If the language is to be detected, a text that cannot be translated does not fail the call, since
        it may already be in the target language.

    Raises:
        InvalidRequestError: fields are wrong or unsupported; the message names all of them.
    """
    config = request.glossary_config
    raise_if_any(
        [
            *_bad_parent(request.parent),
            *_bad_name("model", request.model, _MODEL, "models/general/nmt"),
            *_bad_name(_GLOSSARY_FIELD, config.glossary, _GLOSSARY, "glossaries/NAME"),
            *_unsupported(request),
            *bad_count(request.contents, settings),
        ]
    )
    source = request.source_language_code or AUTO
    asked = pb.TranslateTextRequest(
        contents=request.contents,
        source_language_code=source,
        target_language_code=request.target_language_code,
        model=model_of(request.model),
        mime_type=request.mime_type or HTML,
        all_or_nothing=source.lower() != AUTO,
    )
    if config.glossary:
        asked.options.glossary.names.append(_last_part(config.glossary, _GLOSSARY))
    return asked


def translated(
    request: google.TranslateTextRequest, asked: pb.TranslateTextRequest, answer: pb.TranslateTextResponse
) -> google.TranslateTextResponse:
    """Make the answer to a request for translations.

    Args:
        asked: the converted request.
        answer: the answer to it, with a translation of each text.
    """
    undetected = _UNDETERMINED if asked.source_language_code.lower() == AUTO else ""
    made = google.TranslateTextResponse()
    for each in answer.translations:
        language = each.detected_language_code or undetected
        made.translations.add(
            translated_text=each.translated_text, detected_language_code=language, model=request.model
        )
    if request.glossary_config.glossary:
        made.glossary_translations.extend(made.translations)
        for translation in made.glossary_translations:
            translation.glossary_config.CopyFrom(request.glossary_config)
    return made


def in_own_names(error: InvalidRequestError) -> InvalidRequestError:
    """Give an error of a translation in which the fields have the caller's names."""
    renamed = [FieldViolation(_OWN_GLOSSARY.sub(_GLOSSARY_FIELD, field), rule) for field, rule in error.violations]
    if renamed == error.violations:
        return error
    own = invalid(renamed)
    own.request_id = error.request_id
    return own


def detection_asked(request: google.DetectLanguageRequest) -> pb.DetectLanguageRequest:
    """Convert a request for the language of a text; raises as :func:`translation_asked` does."""
    violations = [
        *_bad_parent(request.parent),
        *_bad_name("model", request.model, _MODEL, f"models/{_DETECTION}", only={_DETECTION}),
    ]
    if not request.HasField("content"):
        violations.append(FieldViolation("content", "must be set"))
    raise_if_any(violations)
    return pb.DetectLanguageRequest(contents=[request.content], mime_type=request.mime_type or HTML)


def detected(answer: pb.DetectLanguageResponse) -> google.DetectLanguageResponse:
    """Make the answer to a request for the language of a text: at least one, "und" if the text shows none."""
    made = google.DetectLanguageResponse()
    for each in answer.detections[0].languages:
        made.languages.add(language_code=each.language_code, confidence=each.confidence)
    if not made.languages:
        made.languages.add(language_code=_UNDETERMINED)
    return made


def languages_asked(request: google.GetSupportedLanguagesRequest) -> pb.ListModelsRequest:
    """Convert a request for languages; raises as :func:`translation_asked` does."""
    raise_if_any([*_bad_parent(request.parent), *_bad_name("model", request.model, _MODEL, "models/general/nmt")])
    return pb.ListModelsRequest()


def languages(request: google.GetSupportedLanguagesRequest, answer: pb.ListModelsResponse) -> google.SupportedLanguages:
    """Make the answer to a request for languages, ordered by code.

    Args:
        answer: the list of all models.
    """
    name = model_of(request.model)
    models = [model for model in answer.models if name in ("", model.name)]
    sources = {code for model in models for code in model.source_language_codes}
    targets = {code for model in models for code in model.target_language_codes}
    made = google.SupportedLanguages()
    for code in sorted(sources | targets):
        display_name = name_of(code) if request.display_language_code else ""
        made.languages.add(
            language_code=code,
            display_name=display_name,
            support_source=code in sources,
            support_target=code in targets,
        )
    return made


def _bad_parent(parent: str) -> Iterator[FieldViolation]:
    if not _PARENT.fullmatch(parent):
        rule = f"must be projects/PROJECT or projects/PROJECT/locations/LOCATION, is {parent[:_QUOTED]!r}"
        yield FieldViolation("parent", rule)


def _bad_name(
    field: str, value: str, form: re.Pattern[str], example: str, only: Iterable[str] = ()
) -> Iterator[FieldViolation]:
    """Report a resource name of a wrong form, or outside the allowed names; an empty name is valid."""
    if not value or (form.fullmatch(value) and (not only or _last_part(value, form) in only)):
        return
    yield FieldViolation(field, f"must be projects/PROJECT/locations/LOCATION/{example}, is {value[:_QUOTED]!r}")


def _unsupported(request: google.TranslateTextRequest) -> Iterator[FieldViolation]:
    config = request.glossary_config
    if request.transliteration_config.enable_transliteration:
        yield FieldViolation("transliteration_config.enable_transliteration", "must be false: no script is changed")
    if request.HasField("glossary_config") and not config.glossary:
        yield FieldViolation("glossary_config.glossary", "must be set")
    if config.ignore_case:
        yield FieldViolation("glossary_config.ignore_case", "must be false: each stored term says whether case counts")
    if config.contextual_translation_enabled:
        yield FieldViolation("glossary_config.contextual_translation_enabled", "must be false: terms stand as given")


def model_of(name: str) -> str:
    """Give the name of this server's model; "" for any."""
    own = _last_part(name, _MODEL) if name else ""
    return "" if own in _GENERAL else own


def _last_part(name: str, form: re.Pattern[str]) -> str:
    match = form.fullmatch(name)
    assert match, "the request was checked"
    return match[1]
