"""The fields of a request against the limits: all that is wrong with it at once."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman import language
from dragoman.errors import FieldViolation, InvalidRequestError, UnknownLanguagePairError
from dragoman.v1 import translation_pb2 as pb
from service.calls.limits import bad_beam, bad_prefix, bad_sampling, invalid, raise_if_any
from service.handlers.asked_terms import bad_terms, terms_of
from service.handlers.options import options_of, scoring_options_of
from service.handlers.route import Route
from service.handlers.spoken import spoken_of
from service.options import MAX_BEAM_SIZE, Sampling, beam_size_of
from service.registry.catalog import Catalog, Choice, ServedModel
from service.registry.glossaries import Glossaries
from service.settings import Settings
from service.text.translator import Translator
from service.wire import HTML, TAGGED, XML

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PRIORITIES: Final = frozenset(pb.Priority.values())
# Of an answer, for each byte of a target text: a token has some 4 bytes, and its score 20 besides its piece.
_SCORE_BYTES: Final = 8
_QUOTED: Final = 32  # characters of a bad value that a message repeats
_MOST_XML_TAGS: Final = 100  # of each kind
# A translation into a script of three bytes a character has about three times the bytes of its Latin source.
_TIMES_ITS_SOURCE: Final = 3
_ALIGNMENT_TEXTS: Final = 2  # texts as large as the translation that take the room of its alignments

# What says how to translate: of all texts of a call.
_Asked = pb.TranslateTextRequest | pb.BatchTranslateTextConfig


class Checked(NamedTuple):
    """A request whose model is chosen, and that is checked as far as the manifest of the model tells.

    Attributes:
        asked: what says how to translate.
        chosen: the model.
        violations: that were found so far; they are raised at once where the model is not in memory.
        prefix: of the names of its fields.
    """

    asked: _Asked
    chosen: Choice
    violations: list[FieldViolation]
    prefix: str

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """All that texts go through, in their order."""
        return self.chosen.models


def check(
    request: pb.TranslateTextRequest, catalog: Catalog, settings: Settings, *, source: str, one_answer: bool = False
) -> Checked:
    """Check a request and find its model. Texts that are too large are not among what is wrong with the request.

    Args:
        request: of a call.
        catalog: the models that are served.
        settings: the limits.
        source: the language of the texts, as the request says it, or as it was detected.
        one_answer: whether all translations are to fit one message.

    Raises:
        InvalidRequestError: at least one field is out of range, and the model is not in memory; names all of them.
        UnknownModelError: no model has the given name.
        UnknownLanguagePairError: no model translates between the given languages.
    """
    violations = _texts(request, settings, one_answer=one_answer)
    return _check(request, source, catalog, violations, "")


def check_known(request: pb.TranslateTextRequest, settings: Settings, *, one_answer: bool) -> None:
    """Check what of a request its route does not depend on: its texts and its name; raises as :func:`check`.

    Args:
        request: of a call, whose route is known.
        settings: the limits.
        one_answer: whether all translations are to fit one message.
    """
    violations = _texts(request, settings, one_answer=one_answer)
    if request.request_id:
        violations += _request_id(request)
    if violations:
        raise invalid(violations)


def check_options(config: pb.BatchTranslateTextConfig, source: str, catalog: Catalog) -> Checked:
    """Check a request whose texts come from no client, and find its model; raises as :func:`check`."""
    return _check(config, source, catalog, [], "")


def route(checked: Checked, settings: Settings, glossaries: Glossaries, translator: Translator) -> Route:
    """Check the rest of a request, which needs its models in memory, and work out its route.

    Args:
        checked: the request.
        settings: the limits.
        glossaries: that are stored.
        translator: of its model.

    Raises:
        InvalidRequestError: at least one field is out of range; names all of them.
        UnknownGlossaryError: no stored glossary has a given name.
    """
    asked, chosen, violations, prefix = checked
    options, sampling = asked.options, _sampling(asked.options)
    max_target_tokens = options.max_target_tokens or chosen.model.manifest.max_target_tokens
    bad = [
        *bad_prefix(options.target_prefix, translator, max_target_tokens, "options."),
        *bad_terms(options, chosen),
    ]
    raise_if_any([*violations, *(FieldViolation(prefix + field, description) for field, description in bad)])
    return Route(
        chosen,
        options_of(
            asked,
            chosen,
            max_target_tokens=max_target_tokens,
            beam_size=beam_size_of(options.beam_size, options.alternatives, 1 if sampling else settings.beam_size),
            sampling=sampling,
            prefix_ids=translator.prefix_ids(options.target_prefix),
            terms=terms_of(options, chosen, glossaries, prefix),
        ),
    )


def check_undetected(
    request: pb.TranslateTextRequest, catalog: Catalog, settings: Settings, sources: Sequence[str], *, one_answer: bool
) -> None:
    """Check what of a request can be checked before the language of its texts is known.

    Args:
        request: of a call.
        catalog: the models that are served.
        settings: the limits.
        sources: the languages from which it can be translated, at least one.
        one_answer: whether all translations are to fit one message.

    Raises:
        InvalidRequestError: at least one field is out of range; names all of them.
    """
    violations = _texts(request, settings, one_answer=one_answer)
    violations += [*_languages(request, sources[0], catalog), *_mime_type(request)]
    violations += [*_request_id(request), *_priority(request)]
    raise_if_any([*violations, *_untold(request, _choose(request, sources[0], catalog, violations), catalog)])


def check_detection(request: pb.DetectLanguageRequest, settings: Settings) -> None:
    """Check a request for the languages of texts.

    Raises:
        InvalidRequestError: at least one field is out of range; names all of them.
    """
    raise_if_any([*_count(request.contents, settings), *_mime_type(request), *_request_id(request)])


def check_texts(request: pb.TranslateTextRequest, settings: Settings) -> None:
    """Check the texts of a request that needs no model; raises as :func:`check_detection`."""
    raise_if_any(_texts(request, settings, one_answer=True))


def check_config(request: pb.BatchTranslateTextRequest, catalog: Catalog) -> Checked:
    """Check the first message of a batch, and find its model; raises as :func:`check`."""
    violations = []
    if not request.HasField("config"):
        violations.append(FieldViolation("config", "must be set in the first message"))
    elif request.contents:
        violations.append(FieldViolation("contents", "must be empty in the first message, which holds the config"))
    raise_if_any(violations)
    source, undetected = _undetected(request.config, catalog)
    violations = [FieldViolation(f"config.{field}", description) for field, description in undetected]
    return _check(request.config, source, catalog, violations, "config.")


def check_contents(request: pb.BatchTranslateTextRequest, settings: Settings) -> None:
    """Check a further message of a batch.

    Raises:
        InvalidRequestError: it has another config, or too many texts or none.
    """
    violations = []
    if request.HasField("config"):
        violations.append(FieldViolation("config", "must be set in the first message only"))
    raise_if_any([*violations, *_count(request.contents, settings)])


def check_pairs(request: pb.ScoreTextRequest, catalog: Catalog, settings: Settings) -> Route:
    """Check a request for scores, and work out its route. Whether a pair can be scored shows later.

    Raises:
        InvalidRequestError: at least one field is out of range; names all of them.
        UnknownModelError: no model has the given name.
        UnknownLanguagePairError: no model translates between the given languages by itself.
    """
    source, undetected = _undetected(request, catalog)
    violations = [*_pairs(request.pairs, settings), *undetected, *_languages(request, source, catalog)]
    violations += [*_request_id(request), *_priority(request)]
    chosen = _choose(request, source, catalog, violations)
    raise_if_any([*violations, *_untold(request, chosen, catalog)])
    target = request.target_language_code
    if chosen.pivot is not None:
        raise UnknownLanguagePairError(
            f"no model translates from {source!r} to {target!r} by itself, and a translation over a third language has "
            "no score",
            metadata={"source_language_code": source, "target_language_code": target, "model": ""},
        )
    return Route(chosen, scoring_options_of(request, chosen))


def check_page(request: pb.ListModelsRequest | pb.ListGlossariesRequest) -> None:
    """Check a request for a page of a list; any token is one, since it only says where to go on.

    Raises:
        InvalidRequestError: its size is negative.
    """
    if request.page_size < 0:
        raise invalid([FieldViolation("page_size", f"must not be negative, is {request.page_size}")])


def is_request_id(text: str) -> bool:
    """Tell whether a caller may give its request this name."""
    return _REQUEST_ID.fullmatch(text) is not None


def _check(asked: _Asked, source: str, catalog: Catalog, violations: list[FieldViolation], prefix: str) -> Checked:
    checks = (*_languages(asked, source, catalog), *_mime_type(asked), *_request_id(asked), *_priority(asked))
    violations += [FieldViolation(prefix + field, description) for field, description in checks]
    chosen = _choose(asked, source, catalog, violations)
    checks = (
        *_untold(asked, chosen, catalog),
        *_options(asked.options, chosen.model),
        *_beam(asked.options, chosen),
        *_alignments(asked, chosen),
        *_xml_tags(asked),
    )
    violations += [FieldViolation(prefix + field, description) for field, description in checks]
    if (sampling := _sampling(asked.options)) is not None:
        violations += bad_sampling(sampling, f"{prefix}options.sampling.")
    if any(model.pipeline is None for model in chosen.models):
        raise_if_any(violations)  # no model is loaded for a bad request
    return Checked(asked, chosen, violations, prefix)


def _choose(
    asked: _Asked | pb.ScoreTextRequest, source: str, catalog: Catalog, violations: Sequence[FieldViolation]
) -> Choice:
    """Find the model of a request; where there is none, what else is wrong with the request goes first."""
    try:
        return catalog.choose(asked.model, source, asked.target_language_code)
    except InvalidRequestError:
        raise_if_any(violations)
        raise


def _pairs(pairs: Sequence[pb.TextPair], settings: Settings) -> Iterator[FieldViolation]:
    """Refuse pairs whose scores would hardly fit one message."""
    if not 1 <= len(pairs) <= settings.max_contents:
        yield FieldViolation("pairs", f"must hold 1 to {settings.max_contents} pairs, holds {len(pairs)}")
    limit_bytes = settings.max_answer_bytes // _SCORE_BYTES
    if (size := sum(len(pair.target_text.encode()) for pair in pairs)) > limit_bytes:
        yield FieldViolation(
            "pairs",
            f"must have target texts of at most {limit_bytes} bytes together, has {size}: the answer is one message of "
            f"at most {settings.max_answer_bytes} bytes",
        )


def _answerable(contents: Sequence[str], options: pb.TranslateOptions, settings: Settings) -> Iterator[FieldViolation]:
    """Refuse what could be translated and then not be sent; texts that will not be translated do not count."""
    alternatives = min(options.alternatives, MAX_BEAM_SIZE)  # more is an error by itself
    alignments = _ALIGNMENT_TEXTS if options.alignments else 0
    limit_bytes = settings.max_answer_bytes // (_TIMES_ITS_SOURCE * (1 + alternatives + alignments))
    if sum(map(len, contents)) * 4 <= limit_bytes:  # no character takes more bytes
        return
    size = sum(size for text in contents if (size := len(text.encode())) <= settings.max_text_bytes)
    if size > limit_bytes:
        asked = [f"{alternatives} alternatives"] * bool(alternatives) + ["the alignments"] * bool(alignments)
        beside = f" with {' and '.join(asked)} of each" if asked else ""
        yield FieldViolation(
            "contents",
            f"must be at most {limit_bytes} bytes together{beside}, are {size}: the answer is one message of at most "
            f"{settings.max_answer_bytes} bytes; StreamTranslateText and BatchTranslateText take more",
        )


def _count(contents: Sequence[str], settings: Settings) -> Iterator[FieldViolation]:
    if not 1 <= len(contents) <= settings.max_contents:
        yield FieldViolation("contents", f"must hold 1 to {settings.max_contents} texts, holds {len(contents)}")


def _texts(request: pb.TranslateTextRequest, settings: Settings, *, one_answer: bool) -> list[FieldViolation]:
    contents = request.contents
    violations: list[FieldViolation] = []
    if not 1 <= len(contents) <= settings.max_contents:
        violations += _count(contents, settings)
    if one_answer:
        violations += _answerable(contents, request.options, settings)
    return violations


def _undetected(
    asked: pb.BatchTranslateTextConfig | pb.ScoreTextRequest, catalog: Catalog
) -> tuple[str, list[FieldViolation]]:
    """Give the source language of a call that detects none, and refuse the wish for that."""
    spoken = spoken_of(asked, catalog)
    if not spoken.among:
        return spoken.source, []
    there_are = f"there are {language.several(spoken.among)}"
    rule = f"must say the language, which is not detected in this method; DetectLanguage does; {there_are}"
    return spoken.among[0], [FieldViolation("source_language_code", rule)]


def _languages(request: _Asked | pb.ScoreTextRequest, source: str, catalog: Catalog) -> Iterator[FieldViolation]:
    target = request.target_language_code
    for field, code in (("source_language_code", source), ("target_language_code", target)):
        if code and not (language.is_code(code) or catalog.knows(code)):
            yield FieldViolation(field, f"{language.RULE}, is {_quote(code)}")


def _untold(request: _Asked | pb.ScoreTextRequest, chosen: Choice, catalog: Catalog) -> Iterator[FieldViolation]:
    """Find the target language that has to be told, and the request does not say."""
    name, languages = chosen.model.manifest.name, chosen.model.manifest.languages
    if not chosen.target:
        yield FieldViolation(
            "target_language_code", f"required: model {name} writes {len(languages.targets)} languages"
        )
    elif not (request.target_language_code or request.model) and catalog.needs_target():
        yield FieldViolation("target_language_code", "required: there is a language that is translated into several")


def _mime_type(request: _Asked | pb.DetectLanguageRequest) -> Iterator[FieldViolation]:
    if request.mime_type not in ("", "text/plain", *TAGGED):
        description = f'must be "text/plain", "{HTML}", "{XML}" or empty, is {_quote(request.mime_type)}'
        yield FieldViolation("mime_type", description)


def _request_id(request: _Asked | pb.ScoreTextRequest | pb.DetectLanguageRequest) -> Iterator[FieldViolation]:
    if request.request_id and not is_request_id(request.request_id):
        yield FieldViolation(
            "request_id", f'must be 1 to 128 letters, digits and any of "._:-", is {_quote(request.request_id)}'
        )


def _priority(request: _Asked | pb.ScoreTextRequest) -> Iterator[FieldViolation]:
    if request.priority not in _PRIORITIES:
        yield FieldViolation("priority", f"must be one of {', '.join(pb.Priority.keys())}, is {request.priority}")


def _options(options: pb.TranslateOptions, model: ServedModel) -> Iterator[FieldViolation]:
    tokens, limit = options.max_target_tokens, model.manifest.max_target_tokens
    if tokens > limit:
        yield FieldViolation(
            "options.max_target_tokens",
            f"must be at most {limit} for model {model.manifest.name}, is {tokens}",
        )


def _beam(options: pb.TranslateOptions, chosen: Choice) -> Iterator[FieldViolation]:
    size, alternatives = options.beam_size, options.alternatives
    models = [chosen.model, *([chosen.pivot.model] if chosen.pivot else [])]
    slots = min(model.slots for model in models)
    sampled = options.HasField("sampling")
    return bad_beam(size, options.length_penalty, alternatives, slots, "options.", sampled=sampled)


def _sampling(options: pb.TranslateOptions) -> Sampling | None:
    """Read how tokens are drawn; None where they are not."""
    if not options.HasField("sampling"):
        return None
    asked = options.sampling
    return Sampling.of(
        seed=asked.seed if asked.HasField("seed") else None,
        temperature=asked.temperature if asked.HasField("temperature") else None,
        top_k=asked.top_k,
        top_p=asked.top_p if asked.HasField("top_p") else None,
    )


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
            yield FieldViolation(
                f"options.xml_tags.{field}", f"must hold at most {_MOST_XML_TAGS} names, holds {len(names)}"
            )


def _quote(value: str) -> str:
    return repr(value if len(value) <= _QUOTED else value[:_QUOTED] + "…")
