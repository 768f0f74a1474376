"""The options of a translation, and their wire form, for both clients and all calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from numbers import Real
from typing import Any, Final, Literal, SupportsIndex, TypedDict, TypeVar, cast

from dragoman.glossary import GlossaryEntry
from dragoman.spelling import did_you_mean
from dragoman.surrogates import HALF, is_whole
from dragoman.v1 import translation_pb2 as pb

Priority = Literal["interactive", "bulk"]
_PRIORITIES: dict[str | None, pb.Priority] = {
    None: pb.PRIORITY_UNSPECIFIED,
    "interactive": pb.PRIORITY_INTERACTIVE,
    "bulk": pb.PRIORITY_BULK,
}


GlossaryTerms = Mapping[str, "str | Sequence[str] | None"] | Sequence[GlossaryEntry]


class Options(TypedDict, total=False):
    """The keyword arguments of every call that translates.

    Attributes:
        source_language: BCP-47 code such as "en", or "auto" to detect the language of each text (not in
            `translate_many`). Default: the only possible source language, or "auto" if there are several.
        target_language: BCP-47 code such as "de"; optional if `model` is given.
        model: the name of a model, from `list_models`. Default: the server chooses one by the languages.
        mime_type: the format of the texts: "text/plain" (the default), "text/html" or "text/xml".
        splitting_tags: names of XML elements whose tags end a sentence; all other tags stand inside a sentence.
        kept_tags: names of XML elements that stay unchanged, with all of their content.
        max_target_tokens: the limit of target tokens for one segment. Default: the model's limit.
        mean_log_probability: whether the answers contain the model's confidence, see `Translation`.
        beam_size: how many hypotheses of each segment are kept at a time, 1 to 16; 1 is greedy decoding. Default: the
            server chooses.
        length_penalty: the log-probability of a hypothesis is divided by its length to this power, -10 to 10; default
            1.0. Higher values favour long translations.
        alternatives: the number of best translations listed for each text, 0 (the default) to 16, at most `beam_size`.
        target_prefix: the beginning of the translation of each text; the model continues from there.
        temperature: tokens are drawn at random; their scores are first divided by this number, 0.01 to 10. Default: 1.0
            if `top_k`, `top_p` or `seed` is given; without any of them no tokens are drawn.
        top_k: tokens are drawn from this many most probable tokens. Default, and with 0: from all tokens.
        top_p: tokens are drawn from the most probable tokens that together have this probability, above 0 and at most
            1. Default: from all tokens.
        seed: makes the draws repeatable, 0 to 4294967295. Default: the server draws a seed, see `Translation`.
        alignments: whether the answers contain pairs of corresponding words, see `Translation`; not with HTML or XML.
        quality_estimate: whether the answers contain the probability that a reader accepts them, see `Translation`.
        glossary: terms with required translations: a mapping from each term to its translation, to several allowed
            ones, or to None for a term that stays unchanged; or entries, see `GlossaryEntry`. At most 1,000.
        glossaries: names of glossaries that the server has stored, from `list_glossaries`.
        protect_placeholders: whether placeholders such as {name} and %s, URLs, e-mail addresses and emoji stay
            unchanged.
        request_id: a name for the call, such as a UUID, which appears in errors and in the server's log: 1 to 128
            letters, digits and any of "._:-". Default: the server makes one up.
        priority: "interactive" if a person waits for the answer, else "bulk". Default: "bulk" for `translate_many`,
            "interactive" for other calls.
    """

    source_language: str
    target_language: str
    model: str
    mime_type: str
    splitting_tags: Sequence[str]
    kept_tags: Sequence[str]
    max_target_tokens: int | None
    mean_log_probability: bool
    beam_size: int | None
    length_penalty: float | None
    alternatives: int | None
    target_prefix: str
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    alignments: bool
    quality_estimate: bool
    glossary: GlossaryTerms
    glossaries: Sequence[str]
    protect_placeholders: bool
    request_id: str
    priority: Priority | None


_XML_NAME: Final = re.compile(r"[^\W\d][\w.:-]*")  # as the server reads names
# The type of each option, and its name in messages.
_TYPES: Final[Mapping[str, tuple[Any, str]]] = {
    "source_language": (str, "str"),
    "target_language": (str, "str"),
    "model": (str, "str"),
    "mime_type": (str, "str"),
    "splitting_tags": (Sequence, "a sequence of str"),
    "kept_tags": (Sequence, "a sequence of str"),
    "max_target_tokens": (SupportsIndex, "int"),
    "mean_log_probability": (bool, "bool"),
    "beam_size": (SupportsIndex, "int"),
    "length_penalty": (Real, "float"),
    "alternatives": (SupportsIndex, "int"),
    "target_prefix": (str, "str"),
    "temperature": (Real, "float"),
    "top_k": (SupportsIndex, "int"),
    "top_p": (Real, "float"),
    "seed": (SupportsIndex, "int"),
    "alignments": (bool, "bool"),
    "quality_estimate": (bool, "bool"),
    "glossary": ((Mapping, Sequence), "a mapping or a sequence of GlossaryEntry"),
    "glossaries": (Sequence, "a sequence of str"),
    "protect_placeholders": (bool, "bool"),
    "request_id": (str, "str"),
    "priority": (str, "str"),
}
# The ranges of the options that are counts.
_RANGES: Final[Mapping[str, str]] = {
    "max_target_tokens": "0 to the limit of the model",
    "beam_size": "0 to 16",
    "alternatives": "0 to 16",
    "top_k": "0 to 4294967295",
    "seed": "0 to 4294967295",
}
_Method = TypeVar("_Method", bound=Callable[..., Any])


def shows_options(method: _Method) -> _Method:
    """Write the keyword arguments of `Options` into the signature of a method, for `help`."""
    signature = inspect.signature(method)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    shown = signature.replace(parameters=[*own, *inspect.signature(_fields).parameters.values()])
    cast(Any, method).__signature__ = shown
    return method


def request_of(texts: str | Sequence[str], *, all_or_nothing: bool, **options: Any) -> pb.TranslateTextRequest:
    """Build the request of a call; a single text is a list of one.

    Raises:
        ValueError: a text is no valid Unicode, a number is out of range, or there is no such priority.
        TypeError: a text or an option is of a wrong type, or there is no such option.
    """
    _check(options, ("all_or_nothing", "timeout_s"))
    check_flag("all_or_nothing", all_or_nothing)
    contents = _checked_texts(texts, others="; translate_many takes any iterable of str")
    return pb.TranslateTextRequest(contents=contents, all_or_nothing=all_or_nothing, **_fields(**options))


def config_of(*, in_order: bool, **options: Any) -> pb.BatchTranslateTextConfig:
    """Build the config of a batch; raises as `request_of` does."""
    _check(options, ("in_order", "timeout_s"))
    check_flag("in_order", in_order)
    return pb.BatchTranslateTextConfig(in_order=in_order, **_fields(**options))


def score_request_of(
    texts: str | Sequence[str], translations: str | Sequence[str], *, all_or_nothing: bool, **options: Any
) -> pb.ScoreTextRequest:
    """Build the request of a call for scores; a single text with its translation is a list of one.

    Raises:
        ValueError: the numbers of translations and texts differ; or as `request_of`.
        TypeError: one is a str and the other is not; or as `request_of`.
    """
    _check(options, ())
    check_flag("all_or_nothing", all_or_nothing)
    sources, targets = _checked_texts(texts), _checked_texts(translations, "translations")
    if isinstance(texts, str) is not isinstance(translations, str):
        kind = "str" if isinstance(texts, str) else "a sequence of str"
        raise TypeError(f"translations: must be {kind} as texts is, is {type(translations).__name__}")
    if len(sources) != len(targets):
        raise ValueError(
            f"there must be a translation for each text: {len(sources)} texts, {len(targets)} translations"
        )
    pairs = [pb.TextPair(source_text=one, target_text=other) for one, other in zip(sources, targets, strict=True)]
    return pb.ScoreTextRequest(pairs=pairs, all_or_nothing=all_or_nothing, **_addressed(**options))


def as_float(name: str, number: float) -> float:
    """Make a float of a number, which may be an int.

    Args:
        name: the name of the argument.
        number: any number.

    Raises:
        ValueError: the number is too large for a float.
    """
    try:
        return 1.0 * number  # rejects text, which float() would accept
    except OverflowError:
        raise ValueError(f"{name} must be a number from -1.8e+308 to 1.8e+308") from None


def detect_request_of(texts: str | Sequence[str], **options: Any) -> pb.DetectLanguageRequest:
    """Build the request of a call for the languages of texts; a single text is a list of one.

    Raises:
        ValueError: a text is no valid Unicode.
        TypeError: a text or an option is of a wrong type.
    """
    _check(options, ())
    return pb.DetectLanguageRequest(contents=_checked_texts(texts), **options)


def checked_text(index: int, text: str, name: str = "texts") -> str:
    """Check a text and return it.

    Raises:
        TypeError: the argument is no str.
        ValueError: the text is no valid Unicode.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name}[{index}]: must be str, is {type(text).__name__}")
    _refuse_halves(f"{name}[{index}]", text)
    return text


def _refuse_halves(place: str, text: str) -> None:
    if not is_whole(text):
        raise ValueError(f"{place}: {HALF}")


def _checked_texts(texts: str | Iterable[str], name: str = "texts", others: str = "") -> list[str]:
    """Check one text or several and list them; `others` ends the error for anything else."""
    if isinstance(texts, str):
        return [checked_text(0, texts, name)]
    # An iterator has no length; a set and a mapping have no places. A column of numpy or pandas is no Sequence.
    if isinstance(texts, bytes | Mapping | Set) or not isinstance(texts, Collection):
        raise TypeError(f"{name}: must be str or a sequence of str, is {type(texts).__name__}{others}")
    return [checked_text(index, text, name) for index, text in enumerate(texts)]


def check_flag(name: str, value: bool) -> None:
    """Raise a TypeError for an argument that is no bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: must be bool, is {type(value).__name__}")


def _check(options: Mapping[str, Any], others: Sequence[str]) -> None:
    """Raise an error for the first option that is misspelt or of a wrong type; None counts as not given.

    Args:
        options: the options as given by the caller.
        others: the names of the method's other arguments.
    """
    for name, value in options.items():
        if name not in _TYPES:
            hint = did_you_mean(name, [*_TYPES, *others])
            raise TypeError(f"unexpected keyword argument {name!r}{hint}")
        kind, kind_name = _TYPES[name]
        # Text is a sequence, but not of what is wanted.
        if value is not None and (not isinstance(value, kind) or (isinstance(value, str) and kind is not str)):
            raise TypeError(f"{name}: must be {kind_name}, is {type(value).__name__}")
        if isinstance(value, str):
            _refuse_halves(name, value)
        elif kind is Sequence and (wrong := [each for each in value or () if not isinstance(each, str)]):
            raise TypeError(f"{name}: must be {kind_name}, has {wrong[0]!r:.40}")


def _fields(
    *,
    source_language: str = "",
    target_language: str = "",
    model: str = "",
    mime_type: str = "",
    splitting_tags: Sequence[str] = (),
    kept_tags: Sequence[str] = (),
    max_target_tokens: int | None = None,
    mean_log_probability: bool = False,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    alternatives: int | None = None,
    target_prefix: str = "",
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    alignments: bool = False,
    quality_estimate: bool = False,
    glossary: GlossaryTerms = (),
    glossaries: Sequence[str] = (),
    protect_placeholders: bool = False,
    request_id: str = "",
    priority: Priority | None = None,
) -> dict[str, Any]:
    """Build the fields that request and config have in common."""
    counts = {"max_target_tokens": max_target_tokens, "beam_size": beam_size, "alternatives": alternatives}
    for name, count in {**counts, "top_k": top_k, "seed": seed}.items():
        if not 0 <= (count or 0) < 2**32:
            raise ValueError(f"{name} must be {_RANGES[name]}, is {count}")
    for name, number in (("length_penalty", length_penalty), ("temperature", temperature), ("top_p", top_p)):
        as_float(name, number or 0.0)
    return {
        **_addressed(source_language, target_language, model, request_id, priority),
        "mime_type": mime_type,
        "options": pb.TranslateOptions(
            mean_log_probability=mean_log_probability,
            length_penalty=length_penalty,
            target_prefix=target_prefix,
            sampling=_sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed),
            alignments=alignments,
            quality_estimate=quality_estimate,
            glossary=_glossary(glossary or (), glossaries or ()),
            protect_placeholders=protect_placeholders,
            xml_tags=_xml_tags(splitting_tags or (), kept_tags or ()),
            **counts,
        ),
    }


def _addressed(
    source_language: str = "",
    target_language: str = "",
    model: str = "",
    request_id: str = "",
    priority: Priority | None = None,
) -> dict[str, Any]:
    """Build the fields that all requests have: the model or languages, the request id and the priority."""
    if priority not in _PRIORITIES:
        raise ValueError(f'priority must be "interactive" or "bulk", is {priority!r}')
    return {
        "source_language_code": source_language,
        "target_language_code": target_language,
        "model": model,
        "request_id": request_id,
        "priority": _PRIORITIES[priority],
    }


def _sampling(**asked: Any) -> pb.Sampling | None:
    """Build the sampling options; None if no option is given."""
    return pb.Sampling(**asked) if any(value is not None for value in asked.values()) else None


def _xml_tags(splitting: Sequence[str], kept: Sequence[str]) -> pb.XmlTags | None:
    """Build the XML tag options; None if no option is given."""
    for option, names in (("splitting_tags", splitting), ("kept_tags", kept)):
        if wrong := [name for name in names if not _XML_NAME.fullmatch(name)]:
            raise ValueError(f"{option}: must be names of elements, such as b, has {wrong[0]!r:.40}")
    return pb.XmlTags(splitting=splitting, kept=kept) if splitting or kept else None


def _glossary(terms: GlossaryTerms, names: Sequence[str]) -> pb.Glossary | None:
    """Build the glossary of a call; None if no glossary is given."""
    if isinstance(terms, Mapping):
        entries = [
            GlossaryEntry(term, (forms,) if isinstance(forms, str) else () if forms is None else forms)
            for term, forms in terms.items()
        ]
    else:
        entries = [_entry(index, entry) for index, entry in enumerate(terms)]
    for entry in entries:
        _check_entry(entry)
    if not (entries or names):
        return None
    messages = [
        pb.GlossaryEntry(source_term=entry.source_term, target_terms=entry.target_terms, ignore_case=entry.ignore_case)
        for entry in entries
    ]
    return pb.Glossary(entries=messages, names=names)


def _entry(index: int, given: Any) -> GlossaryEntry:
    """Make an entry of a sequence of term, translations and whether case is ignored."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not 1 <= len(given) <= len(GlossaryEntry._fields):
        kind = type(given).__name__
        raise TypeError(f"glossary[{index}]: must be a GlossaryEntry, or a term and its translations, is {kind}")
    return GlossaryEntry(*given)


def _check_entry(entry: GlossaryEntry) -> None:
    """Raise an error for an entry whose term or translations are of a wrong type."""
    term, forms, _ = entry
    if not isinstance(term, str):
        raise TypeError(f"glossary: a term must be str, is {type(term).__name__}")
    if isinstance(forms, str) or not isinstance(forms, Sequence):
        raise TypeError(f"glossary[{term!r}]: must be a sequence of str, is {type(forms).__name__}")
    _refuse_halves(f"glossary[{term!r}]", term)
    for index, form in enumerate(forms):
        checked_text(index, form, f"glossary[{term!r}]")
