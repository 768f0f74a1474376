"""The families that can be imported, by `model_type` of config.json, and the reasons against others."""

from typing import Final

from dragoman.errors import DataError
from model.importing import bart, ctranslate2, m2m100, marian, marian_npz, t5
from model.importing.family import Family
from model.importing.formats import other_format
from model.importing.source import CONFIG, MARIAN_BIN, MARIAN_NPZ, Source

FAMILIES: Final[dict[str, Family]] = {
    "marian": marian.FAMILY,
    "m2m_100": m2m100.FAMILY,
    "mbart": bart.MBART,
    "bart": bart.BART,
    "t5": t5.T5,
    "mt5": t5.MT5,
    "umt5": t5.UMT5,
    "ctranslate2": ctranslate2.FAMILY,
    MARIAN_NPZ: marian_npz.FAMILY,
    MARIAN_BIN: marian_npz.FAMILY,
}

# BART's network can be read, but not its tokenizer.
_SUPPORTED: Final = [kind for kind in FAMILIES if kind != "bart"]
_REFUSED: Final = {
    "nllb-moe": "its layers are mixtures of experts; the dense NLLB models can be imported",
    "fsmt": "its tokenizer needs Moses and BPE",
}


def family_of(source: Source) -> Family:
    """Find the family of a folder.

    Raises:
        DataError: the family cannot be imported; the message lists those that can.
    """
    kind = source.config.get("model_type")
    if isinstance(kind, str) and kind in FAMILIES:
        return FAMILIES[kind]
    if kind is None and "source_vocabulary_size" in source.config:
        raise DataError(f"{source.folder}: is a checkpoint already; dragoman export makes a bundle from it")
    if kind is None and (other := other_format(source.folder)):
        raise DataError(f"{source.folder}: {other}")
    why = f": {_REFUSED[kind]}" if isinstance(kind, str) and kind in _REFUSED else ""
    raise DataError(
        f"{source.folder / CONFIG}: model_type {kind!r:.60} cannot be imported{why}; "
        f"supported are {', '.join(_SUPPORTED)}"
    )
