"""BART and mBART: learned positions, normalized embeddings; mBART normalizes before its sublayers, BART after them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks
from model.importing import bart_like, fairseq, languages, tokenizers
from model.importing.family import Family, Network, Texts, Wanted
from model.importing.generation import Generation, read_generation
from model.importing.settings import activation, check_keys, whole
from model.importing.source import Source
from model.safetensors_file import Weights

# The offset of the first position: fairseq counts from the position after the padding id, whatever that id is.
_OFFSET: Final = 2
_SPM: Final = "sentencepiece.bpe.model"
_VOCABULARY_SIZE: Final = 50265
# Keys in older files of both, and of mBART.
_BART_FIXED: Final = {
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": False,
    "do_blenderbot_90_layernorm": False,
    "extra_pos_embeddings": 2,
}
_MBART_FIXED: Final = _BART_FIXED | {"normalize_before": True, "add_final_layer_norm": True}
# The languages of mBART-25, whose files do not list them.
_MBART_25_WORDS: Final = """
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX
ro_RO ru_RU si_LK tr_TR vi_VN zh_CN
"""
_MBART_25: Final = tuple(_MBART_25_WORDS.split())


def _check(fixed: Mapping[str, object], kind: str, source: Source) -> list[str]:
    check_keys(source, bart_like.USED, fixed, f"{kind}ForConditionalGeneration")
    activation(source, "activation_function", "gelu")
    return list(_generation(source).warnings)


def _bart_texts(source: Source, wanted: Wanted) -> Texts:
    raise DataError(
        f"{source.folder}: the tokenizer of BART splits texts into bytes (vocab.json and merges.txt), "
        "which is not supported; mBART can be imported"
    )


def _mbart_texts(source: Source, wanted: Wanted) -> Texts:
    """Read the tokenizer; the mark of a source stands before it (mBART-50) or after it (mBART-25)."""
    rows = whole(source, "vocab_size", _VOCABULARY_SIZE)
    files, first = fairseq.with_offset(source, _SPM, rows)
    ids = fairseq.language_ids(source, first, rows, _MBART_25)
    make = _mark_50 if _is_50(source, len(ids)) else _mark_25
    # The start id of a model that was trained for one target identifies the target.
    start = next((token for token, id_ in ids.items() if id_ == _generation(source).start_id), None)
    if start and not wanted.targets:
        wanted = replace(wanted, targets=(start,))
    found, warnings = languages.make(list(ids), list(ids), {code: make(id_) for code, id_ in ids.items()}, wanted)
    return Texts(files, fairseq.HEAD.index("<unk>"), found, warnings)


def _is_50(source: Source, count: int) -> bool:
    """Tell whether the tokenizer is that of mBART-50, by its name, or by the number of languages."""
    name = source.json(tokenizers.TOKENIZER_CONFIG).get("tokenizer_class") or source.config.get("tokenizer_class")
    return str(name).startswith("MBart50") if name else count > len(_MBART_25)


def _mark_50(id_: int) -> LanguageMarks:
    return LanguageMarks(source_prefix=(id_,), target_prefix=(id_,))


def _mark_25(id_: int) -> LanguageMarks:
    return LanguageMarks(source_suffix=(id_,), start_id=id_)


def _network(norm: Literal["pre", "post"], source: Source, weights: Weights, unknown_id: int) -> Network:
    generation = _generation(source)
    layout = bart_like.Layout(
        norm=norm,
        embedding_norm=True,
        positions="learned",
        position_offset=_OFFSET,
        defaults=bart_like.DEFAULTS,
        default_activation="gelu",
        default_scale=False,
    )
    start = generation.eos_id if generation.start_id is None else generation.start_id
    return bart_like.network(source, weights, layout, generation, unknown_id, start)


def _generation(source: Source) -> Generation:
    return read_generation(source, pad_id=1, eos_id=2, start_id=None)


BART: Final = Family("BART", partial(_check, _BART_FIXED, "Bart"), _bart_texts, partial(_network, "post"))
MBART: Final = Family("mBART", partial(_check, _MBART_FIXED, "MBart"), _mbart_texts, partial(_network, "pre"))
