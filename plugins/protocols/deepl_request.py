"""DeepL's requests to translate texts or a document, without options that this server cannot fulfil.

The parameters: https://developers.deepl.com/api-reference/translate/request-translation.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from dragoman.errors import InvalidRequestError
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from plugins.documents.documents import AskedDocument, check_name
from plugins.http.json_messages import named
from plugins.protocols import form

_FORMATS: Final = {"": "text/plain", "html": "text/html", "xml": "text/xml"}
# Optional hints: any of these values is accepted, and none changes a translation.
_ADVICE: Final = {
    "split_sentences": ("0", "1", "nonewlines"),
    "formality": ("default", "prefer_more", "prefer_less"),
    "model_type": ("quality_optimized", "prefer_quality_optimized", "latency_optimized"),
    "tag_handling_version": ("v1", "v2"),
}
_UNKNOWN_THINGS: Final = ("style_id", "translation_memory_id", "custom_instructions")


def asked_of(given: Mapping[str, Any]) -> tuple[pb.TranslateTextRequest, bool]:
    """Convert parameters to a request, and tell whether its answer counts characters; unknown parameters are ignored.

    Raises:
        InvalidRequestError: a parameter is missing, invalid, or asks for an unsupported feature.
    """
    texts, _ = form.texts_of(given, "text")
    _check_advice(given)
    form.flag_of(given, "preserve_formatting")
    form.text_of(given, "context")
    kind = _one_of(given, "tag_handling", tuple(filter(None, _FORMATS)))
    names = _glossaries(given)
    request = pb.TranslateTextRequest(
        contents=texts,
        source_language_code=form.text_of(given, "source_lang") or AUTO,
        target_language_code=form.needed(given, "target_lang"),
        mime_type=_FORMATS[kind],
        options=pb.TranslateOptions(
            glossary=pb.Glossary(names=names) if names else None,
            xml_tags=_xml_tags(given, kind),
            quality_estimate=form.flag_of(given, "show_quality_estimate"),
        ),
    )
    return request, form.flag_of(given, "show_billed_characters")


def document_of(given: Mapping[str, Any]) -> AskedDocument:
    """Convert parameters to a request for a document; unknown parameters are ignored.

    Raises:
        InvalidRequestError: a parameter is missing, invalid, or asks for an unsupported feature.
    """
    _check_advice(given)
    file = form.file_of(given, "file")
    name = check_name(form.text_of(given, "filename").rpartition("/")[2] or file.name)
    suffix = PurePath(name).suffix.lower()
    output = form.text_of(given, "output_format").lower()
    if output and f".{output.removeprefix('.')}" != suffix:
        raise InvalidRequestError(named("output_format", f"must be that of the document, is {output[:40]!r}"))
    source, target = form.text_of(given, "source_lang") or AUTO, form.needed(given, "target_lang")
    return AskedDocument(name, file.content, source, target, _glossaries(given))


def _check_advice(given: Mapping[str, Any]) -> None:
    """Refuse hints with values that no translation here would follow."""
    for name, values in _ADVICE.items():
        _one_of(given, name, values)
    for name in _UNKNOWN_THINGS:
        if given.get(name):
            raise InvalidRequestError(named(name, "this server has none"))


def _glossaries(given: Mapping[str, Any]) -> list[str]:
    names = [form.text_of(given, "glossary_id"), *form.names_of(given, "glossary_ids")]
    return [name for name in names if name]


def _xml_tags(given: Mapping[str, Any], kind: str) -> pb.XmlTags | None:
    splitting, kept = form.names_of(given, "splitting_tags"), form.names_of(given, "ignore_tags")
    unsplitting = form.names_of(given, "non_splitting_tags")
    if form.flag_of(given, "outline_detection"):
        raise InvalidRequestError(
            named("outline_detection", "must be false: no tag of XML ends a sentence here but those of splitting_tags")
        )
    for name, tags in (("splitting_tags", splitting), ("ignore_tags", kept)):
        if tags and kind != "xml":
            raise InvalidRequestError(named(name, 'must be left out unless tag_handling is "xml"'))
    for name, others in (("non_splitting_tags", unsplitting), ("ignore_tags", kept)):
        if both := set(splitting) & set(others):
            raise InvalidRequestError(named("splitting_tags", f"has a name of {name}: {min(both)[:40]!r}"))
    return pb.XmlTags(splitting=splitting, kept=kept) if kind == "xml" else None


def _one_of(given: Mapping[str, Any], name: str, values: tuple[str, ...]) -> str:
    value = form.text_of(given, name)
    if value and value not in values:
        raise InvalidRequestError(named(name, f"must be one of {', '.join(values)}, is {value[:40]!r}"))
    return value
