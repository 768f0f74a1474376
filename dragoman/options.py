"""What a caller may ask of a translation, and how it is written on the wire, for both clients and all calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from dragoman.v1 import translation_pb2 as pb

Priority = Literal["interactive", "bulk"]
_PRIORITIES: dict[str | None, pb.Priority] = {
    None: pb.PRIORITY_UNSPECIFIED,
    "interactive": pb.PRIORITY_INTERACTIVE,
    "bulk": pb.PRIORITY_BULK,
}


class Options(TypedDict, total=False):
    """The keyword arguments of every call that translates.

    Attributes:
        source_language: BCP-47 code such as "en"; may be left out where `model` is given.
        target_language: BCP-47 code such as "de"; may be left out where `model` is given.
        model: the name of a model, from `list_models`; the server chooses by the languages without.
        mime_type: the format of the texts; "text/plain" without.
        max_target_tokens: the most tokens to produce for one segment; the model's limit without.
        mean_log_probability: whether the answers say how sure the model was, see `Translation`.
        request_id: a name for the call, such as a UUID, which errors and the server's log repeat: 1 to 128 letters,
            digits and any of "._:-"; the server makes one up without.
        priority: "interactive" where somebody waits for the answer, "bulk" where nobody does; without, "bulk" for
            `translate_many` and "interactive" for all others.
    """

    source_language: str
    target_language: str
    model: str
    mime_type: str
    max_target_tokens: int | None
    mean_log_probability: bool
    request_id: str
    priority: Priority | None


def request_of(texts: str | Sequence[str], *, all_or_nothing: bool, **options: Any) -> pb.TranslateTextRequest:
    """Builds the request of a call; a single text is a list of one.

    Raises:
        ValueError: a text is no valid Unicode, a number is out of range, or there is no such priority.
    """
    return pb.TranslateTextRequest(
        contents=[texts] if isinstance(texts, str) else texts, all_or_nothing=all_or_nothing, **_fields(**options)
    )


def config_of(*, in_order: bool, **options: Any) -> pb.BatchTranslateTextConfig:
    """Builds the config of a batch; raises as `request_of`."""
    return pb.BatchTranslateTextConfig(in_order=in_order, **_fields(**options))


def _fields(
    *,
    source_language: str = "",
    target_language: str = "",
    model: str = "",
    mime_type: str = "",
    max_target_tokens: int | None = None,
    mean_log_probability: bool = False,
    request_id: str = "",
    priority: Priority | None = None,
) -> dict[str, Any]:
    """The fields that request and config have in common."""
    if priority not in _PRIORITIES:
        raise ValueError(f'priority must be "interactive" or "bulk", is {priority!r}')
    if not 0 <= (max_target_tokens or 0) < 2**32:
        raise ValueError(f"max_target_tokens must be 0 to {2**32 - 1}, is {max_target_tokens}")
    return {
        "source_language_code": source_language,
        "target_language_code": target_language,
        "model": model,
        "mime_type": mime_type,
        "options": pb.TranslateOptions(max_target_tokens=max_target_tokens, mean_log_probability=mean_log_probability),
        "request_id": request_id,
        "priority": _PRIORITIES[priority],
    }
