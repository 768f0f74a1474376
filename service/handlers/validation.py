"""Checks the fields of a request against the limits: one InvalidRequestError names all bad fields."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dragoman import language
from dragoman.errors import FieldViolation, InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from service.calls.limits import bad_beam, bad_prefix, bad_sampling, raise_if_any
from service.failures import invalid
from service.handlers.glossaries import Glossaries
from service.handlers.options import options_of, sampling_of
from service.handlers.route import Route
from service.handlers.source_language import source_language_of
from service.options import MAX_BEAM_SIZE
from service.registry.catalog import Catalog, Choice, ServedModel
from service.settings import Settings
from service.text.translator import Translator
from service.wire import HTML, TAGGED, XML

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PRIORITIES: Final = frozenset(pb.Priority.values())
_QUOTED: Final = 32  # characters of a bad value that a message repeats
_MOST_XML_TAGS: Final = 100  # of each kind
# A translation into a script of three bytes a character has about three times the bytes of its Latin source.
_TIMES_ITS_SOURCE: Final = 3
OTHERS_TAKE_MORE: Final = "StreamTranslateText and BatchTranslateText take more"
_ALIGNMENT_TEXTS: Final = 2  # the alignments of a translation take the room of this number of translations

# The message with the options for all texts of a call.
_Asked = pb.TranslateTextRequest | pb.BatchTranslateTextConfig


def translation_route(
    request: pb.TranslateTextRequest,
    source: str,
    catalog: Catalog,
    settings: Settings,
    glossaries: Glossaries,
    others: Sequence[Choice] = (),
    *,
    one_answer: bool = False,
) -> Route:
    """Check a request, and find its route. A text that is too large is no error of the request.

    Args:
        source: the language of the texts, as the request says it, or as it was detected.
        one_answer: whether all translations are to fit one message.

    Raises:
        DragomanError: as :func:`route`.
    """
    violations = _texts(request, settings, one_answer=one_answer)
    return route(request, source, catalog, settings, glossaries, others, violations=violations)


def route(
    asked: _Asked,
    source: str,
    catalog: Catalog,
    settings: Settings,
    glossaries: Glossaries,
    others: Sequence[Choice] = (),
    *,
    translator: Translator | None = None,
    violations: Sequence[FieldViolation] = (),
    prefix: str = "",
) -> Route:
    """Check the options for all texts of a call, and find the route.

    Where the model is not in memory, the route lacks the prefix of translations, which only a translator can check.

    Args:
        translator: translator of the model; None: that of the model in memory.
        violations: bad fields that were found before.

    Raises:
        UnknownModelError: no model has the given name.
        UnknownLanguagePairError: no model translates between the given languages.
        UnknownGlossaryError: no stored glossary has a given name.
    """
    chosen, bad = choose(asked, source, catalog, violations, prefix)
    options, sampling = asked.options, sampling_of(asked.options)
    max_target_tokens = options.max_target_tokens or chosen.model.manifest.max_target_tokens
    if translator is None and chosen.model.pipeline is not None:
        translator = chosen.model.pipeline.translator
    found = [
        *_options(options, chosen.model),
        *_beam(options, chosen),
        *_alignments(asked, chosen),
        *_xml_tags(asked),
        *(bad_sampling(sampling) if sampling else ()),
        *(bad_prefix(options.target_prefix, translator, max_target_tokens) if translator else ()),
        *glossaries.bad_terms(options, chosen),
    ]
    raise_if_any(bad + _prefixed(prefix, found))
    return Route(
        chosen,
        options_of(
            asked,
            chosen,
            max_target_tokens=max_target_tokens,
            beam_size=options.beam_size or max(1 if sampling else settings.beam_size, options.alternatives),
            sampling=sampling,
            prefix_ids=translator.prefix_ids(options.target_prefix) if translator else (),
            terms=glossaries.terms_of(options, chosen, prefix, list(others)),
        ),
    )


def check_texts(request: pb.TranslateTextRequest, settings: Settings, *, one_answer: bool) -> None:
    """Check the fields of a request that its route does not depend on: its texts and its id."""
    raise_if_any([*_texts(request, settings, one_answer=one_answer), *_request_id(request)])


def check_undetected(
    request: pb.TranslateTextRequest, source: str, catalog: Catalog, settings: Settings, *, one_answer: bool
) -> None:
    """Check the fields of a request that can be checked before the language of its texts is known.

    Args:
        source: one of the languages from which the request can be translated.
    """
    _, violations = choose(request, source, catalog, _texts(request, settings, one_answer=one_answer))
    raise_if_any(violations)


def check_detection(request: pb.DetectLanguageRequest, settings: Settings) -> None:
    """Check a request for the languages of texts."""
    raise_if_any([*bad_count(request.contents, settings), *_mime_type(request), *_request_id(request)])


def answerable_bytes(settings: Settings, alternatives: int = MAX_BEAM_SIZE, alignments: int = _ALIGNMENT_TEXTS) -> int:
    """Compute the largest total size of texts whose translations have to fit one answer.

    Args:
        alternatives: number of alternatives of each text.
        alignments: room that the alignments of a text take, in translations of the same size.
    """
    return settings.max_answer_bytes // (_TIMES_ITS_SOURCE * (1 + alternatives + alignments))


def check_page(request: pb.ListModelsRequest | pb.ListGlossariesRequest) -> None:
    """Check a request for a page of a list; any text is a valid token, since a token only says where to continue."""
    if request.page_size < 0:
        raise invalid([FieldViolation("page_size", f"must not be negative, is {request.page_size}")])


def is_request_id(text: str) -> bool:
    """Tell whether a text is a valid request id."""
    return _REQUEST_ID.fullmatch(text) is not None


def choose(
    asked: _Asked | pb.ScoreTextRequest,
    source: str,
    catalog: Catalog,
    violations: Sequence[FieldViolation],
    prefix: str = "",
) -> tuple[Choice, list[FieldViolation]]:
    """Check the fields that are the same for all models, and find the model; gives `violations` and further ones, too.

    Raises:
        InvalidRequestError: there is no model; other errors of the request go first.
    """
    found = [*_languages(asked, source, catalog), *_mime_type(asked), *_request_id(asked), *_priority(asked)]
    bad = [*violations, *_prefixed(prefix, found)]
    try:
        chosen = catalog.choose(asked.model, source, asked.target_language_code)
    except InvalidRequestError:
        raise_if_any(bad)
        raise
    return chosen, bad + _prefixed(prefix, _untold(asked, chosen, catalog))


def _prefixed(prefix: str, violations: Iterable[FieldViolation]) -> list[FieldViolation]:
    return [FieldViolation(prefix + field, description) for field, description in violations]


def bad_count(contents: Sequence[str], settings: Settings) -> list[FieldViolation]:
    """Find the error of a request without texts, or with too many."""
    if 1 <= len(contents) <= settings.max_contents:
        return []
    return [FieldViolation("contents", f"must hold 1 to {settings.max_contents} texts, holds {len(contents)}")]


def _texts(request: pb.TranslateTextRequest, settings: Settings, *, one_answer: bool) -> list[FieldViolation]:
    """Find the error of too many texts, or of an answer that would be too large; too large texts do not count."""
    contents, options, violations = request.contents, request.options, bad_count(request.contents, settings)
    alternatives = min(options.alternatives, MAX_BEAM_SIZE)  # more alternatives are another error
    alignments = _ALIGNMENT_TEXTS if options.alignments else 0
    limit_bytes = answerable_bytes(settings, alternatives, alignments)
    # No character takes more bytes. Too many texts are not walked, which would hold the event loop up.
    if violations or not one_answer or sum(map(len, contents)) * 4 <= limit_bytes:
        return violations
    size = sum(size for text in contents if (size := len(text.encode())) <= settings.max_text_bytes)
    if size > limit_bytes:
        asked = [f"{alternatives} alternatives"] * bool(alternatives) + ["the alignments"] * bool(alignments)
        beside = f" with {' and '.join(asked)} of each" if asked else ""
        rule = (
            f"must be at most {limit_bytes} bytes together{beside}, are {size}: the answer is one message of at most "
            f"{settings.max_answer_bytes} bytes; {OTHERS_TAKE_MORE}"
        )
        violations.append(FieldViolation("contents", rule))
    return violations


def undetected(
    asked: pb.BatchTranslateTextConfig | pb.ScoreTextRequest, catalog: Catalog
) -> tuple[str, list[FieldViolation]]:
    """Give the source language of a call in a method without detection; a request for detection is an error."""
    source_language = source_language_of(asked, catalog)
    if not source_language.among:
        return source_language.code, []
    known = language.several(source_language.among)
    rule = f"must name the language, which this method does not detect (DetectLanguage does); the models read: {known}"
    return source_language.among[0], [FieldViolation("source_language_code", rule)]


def _languages(request: _Asked | pb.ScoreTextRequest, source: str, catalog: Catalog) -> Iterator[FieldViolation]:
    target = request.target_language_code
    for field, code in (("source_language_code", source), ("target_language_code", target)):
        if code and not (language.is_code(code) or catalog.knows(code)):
            yield FieldViolation(field, f"{language.RULE}, is {_quote(code)}")


def _untold(request: _Asked | pb.ScoreTextRequest, chosen: Choice, catalog: Catalog) -> Iterator[FieldViolation]:
    """Find the error of a request that needs a target language and names none."""
    name, languages = chosen.model.manifest.name, chosen.model.manifest.languages
    if not chosen.target:
        rule = f"required: model {name} writes {len(languages.targets)} languages"
        yield FieldViolation("target_language_code", rule)
    elif not (request.target_language_code or request.model) and catalog.needs_target:
        yield FieldViolation("target_language_code", "required: there is a language that is translated into several")


def _mime_type(request: _Asked | pb.ScoreTextRequest | pb.DetectLanguageRequest) -> Iterator[FieldViolation]:
    if isinstance(request, pb.ScoreTextRequest):  # of plain texts only
        return
    if request.mime_type not in ("", "text/plain", *TAGGED):
        description = f'must be "text/plain", "{HTML}", "{XML}" or empty, is {_quote(request.mime_type)}'
        yield FieldViolation("mime_type", description)


def _request_id(request: _Asked | pb.ScoreTextRequest | pb.DetectLanguageRequest) -> Iterator[FieldViolation]:
    if request.request_id and not is_request_id(request.request_id):
        rule = f'must be 1 to 128 letters, digits and any of "._:-", is {_quote(request.request_id)}'
        yield FieldViolation("request_id", rule)


def _priority(request: _Asked | pb.ScoreTextRequest) -> Iterator[FieldViolation]:
    if request.priority not in _PRIORITIES:
        yield FieldViolation("priority", f"must be one of {', '.join(pb.Priority.keys())}, is {request.priority}")


def _options(options: pb.TranslateOptions, model: ServedModel) -> Iterator[FieldViolation]:
    tokens, limit = options.max_target_tokens, model.manifest.max_target_tokens
    if tokens > limit:
        rule = f"must be at most {limit} for model {model.manifest.name}, is {tokens}"
        yield FieldViolation("options.max_target_tokens", rule)


def _beam(options: pb.TranslateOptions, chosen: Choice) -> Iterator[FieldViolation]:
    slots = min(model.slots for model in chosen.models)
    sampled = options.HasField("sampling")
    return bad_beam(options.beam_size, options.length_penalty, options.alternatives, slots, sampled=sampled)


def _alignments(asked: _Asked, chosen: Choice) -> Iterator[FieldViolation]:
    if asked.options.alignments and asked.mime_type in TAGGED:
        yield FieldViolation("options.alignments", f'must be false for mime_type "{asked.mime_type}"')
    if asked.options.alignments and chosen.pivot:
        through = f"{chosen.pivot.model.manifest.name} and {chosen.model.manifest.name}"
        yield FieldViolation("options.alignments", f"must be false where two models translate: {through}")


def _xml_tags(asked: _Asked) -> Iterator[FieldViolation]:
    tags = asked.options.xml_tags
    if asked.options.HasField("xml_tags") and asked.mime_type != XML:
        yield FieldViolation("options.xml_tags", f'must be left out unless mime_type is "{XML}"')
    for field, names in (("splitting", tags.splitting), ("kept", tags.kept)):
        if len(names) > _MOST_XML_TAGS:
            rule = f"must hold at most {_MOST_XML_TAGS} names, holds {len(names)}"
            yield FieldViolation(f"options.xml_tags.{field}", rule)
    if both := set(tags.splitting) & set(tags.kept):
        yield FieldViolation("options.xml_tags.splitting", f"has a name of options.xml_tags.kept: {_quote(min(both))}")


def _quote(value: str) -> str:
    return repr(value if len(value) <= _QUOTED else value[:_QUOTED] + "…")
