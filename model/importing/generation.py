"""The decoding settings of a folder: start and end ids, banned ids, and settings that are not supported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.errors import DataError
from model.importing.settings import whole
from model.importing.source import CONFIG, GENERATION, Source

# Settings that change greedy decoding, with their neutral values.
_NOT_APPLIED: Final[dict[str, tuple[Any, ...]]] = {
    "repetition_penalty": (None, 1.0),
    "encoder_repetition_penalty": (None, 1.0),
    "no_repeat_ngram_size": (None, 0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "begin_suppress_tokens": (None, []),
    "sequence_bias": (None, {}, []),
    "exponential_decay_length_penalty": (None,),
    "guidance_scale": (None, 1.0),
    "force_words_ids": (None, []),
}


@dataclass(frozen=True)
class Generation:
    """The ids of greedy decoding.

    Attributes:
        pad_id: the padding id.
        eos_id: the end-of-sentence id.
        start_id: the id with which a translation begins; None: it depends on the language.
        forced_id: the forced first id after it, or None.
        banned: ids that are never chosen.
        warnings: a line for each setting that is not applied.
    """

    pad_id: int
    eos_id: int
    start_id: int | None
    forced_id: int | None
    banned: tuple[int, ...]
    warnings: tuple[str, ...]


def read_generation(source: Source, *, pad_id: int, eos_id: int, start_id: int | None) -> Generation:
    """Read generation_config.json, or the same settings in config.json.

    Args:
        source: the folder.
        pad_id: the default of the family.
        eos_id: the default of the family.
        start_id: the default of the family.

    Raises:
        DataError: an id is invalid.
    """
    settings = source.config if source.generation is None else source.generation
    file = source.folder / (CONFIG if source.generation is None else GENERATION)

    def find(key: str, default: int | None) -> int | None:
        found = next((s[key] for s in (settings, source.config) if s.get(key) is not None), default)
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        if found is not None and not _is_id(found):
            raise DataError(f"{file}: {key} must be one id, is {found!r:.80}")
        return found

    end = find("eos_token_id", eos_id)
    banned, warnings = _banned(settings, end, file)
    warnings += [
        f"{file.name}: {key} is {settings[key]!r:.60}, and is not applied"
        for key, neutral in _NOT_APPLIED.items()
        if key in settings and settings[key] not in neutral
    ]
    forced = settings.get("forced_bos_token_id")
    return Generation(
        pad_id=whole(source, "pad_token_id", pad_id),
        eos_id=eos_id if end is None else end,
        start_id=find("decoder_start_token_id", start_id),
        forced_id=None if forced is None else find("forced_bos_token_id", None),
        banned=banned,
        warnings=tuple(warnings),
    )


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_id, value))


def _banned(settings: dict[str, Any], end: int | None, file: Path) -> tuple[tuple[int, ...], list[str]]:
    """Collect the ids that are never chosen, and a warning for each ban of several ids in a row.

    Raises:
        DataError: what is banned are no ids.
    """
    words, alone = settings.get("bad_words_ids") or [], settings.get("suppress_tokens") or []
    if not (isinstance(words, list) and all(map(_are_ids, words))):
        raise DataError(f"{file}: bad_words_ids must be a list of lists of ids, is {words!r:.80}")
    if not _are_ids(alone):
        raise DataError(f"{file}: suppress_tokens must be a list of ids, is {alone!r:.80}")
    # Hugging Face leaves a ban of the end out, or nothing would ever end.
    single = {word[0] for word in words if len(word) == 1 and word[0] != end}
    single |= set(alone)
    longer = [word for word in words if len(word) > 1]
    return tuple(sorted(single)), [f"bad_words_ids: {word!r:.60} is not banned, only single ids are" for word in longer]
