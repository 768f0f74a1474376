"""M2M100, and the dense models of NLLB-200, which have the same layout."""

from typing import Final

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks
from model.importing import bart_like, fairseq, languages, tokenizers
from model.importing.family import Family, Network, Texts, Wanted
from model.importing.generation import Generation, read_generation
from model.importing.settings import activation, check_keys, whole
from model.importing.source import CONFIG, Source
from model.safetensors_file import Weights

# Keys in older files; BART had these switches, and M2M100 always has these values.
_FIXED: Final = {
    "normalize_before": True,
    "normalize_embedding": False,
    "add_final_layer_norm": True,
    "add_bias_logits": False,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 0,
}
_VOCABULARY_SIZE: Final = 128112
_NLLB_SPM: Final = "sentencepiece.bpe.model"
# Computed position tables, in early files of fairseq.
_IGNORED: Final = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")


def check(source: Source) -> list[str]:
    """Refuse unsupported settings; see `Family.check`."""
    check_keys(source, bart_like.USED, _FIXED, "M2M100ForConditionalGeneration")
    activation(source, "activation_function", "relu")
    generation = _generation(source)
    if generation.start_id == generation.pad_id:
        raise DataError(f"{source.folder / CONFIG}: decoder_start_token_id is pad_token_id, which has no position here")
    return list(generation.warnings)


def texts(source: Source, wanted: Wanted) -> Texts:
    """Read the tokenizer of M2M100 or of NLLB; see `Family.texts`."""
    rows = whole(source, "vocab_size", _VOCABULARY_SIZE)
    is_nllb = source.has(_NLLB_SPM) and not source.has("vocab.json")
    if is_nllb:
        files, first = fairseq.with_offset(source, _NLLB_SPM, rows)
    else:
        files, first = fairseq.with_vocabulary(source, "spm.model" if source.has("spm.model") else _NLLB_SPM, rows)
    ids = fairseq.language_ids(source, first, rows)
    suffix = bool(source.json(tokenizers.TOKENIZER_CONFIG).get("legacy_behaviour", False))
    marks = {
        token.strip("_"): LanguageMarks(
            aliases=(token,) if token.startswith("__") else (),
            source_prefix=() if suffix else (id_,),
            source_suffix=(id_,) if suffix else (),
            target_prefix=(id_,),
        )
        for token, id_ in ids.items()
    }
    found, warnings = languages.make(list(marks), list(marks), marks, wanted)
    return Texts(files, fairseq.HEAD.index("<unk>"), found, warnings)


def network(source: Source, weights: Weights, unknown_id: int) -> Network:
    """Map the weights; see `Family.network`."""
    generation = _generation(source)
    layout = bart_like.Layout(
        norm="pre",
        embedding_norm=False,
        positions="sinusoidal_halves",
        position_offset=generation.pad_id + 1,
        defaults=bart_like.DEFAULTS,
        default_activation="relu",
        default_scale=True,
    )
    start = generation.eos_id if generation.start_id is None else generation.start_id
    return bart_like.network(source, weights, layout, generation, unknown_id, start, ignored=_IGNORED)


FAMILY: Final = Family("M2M100", check, texts, network)


def _generation(source: Source) -> Generation:
    return read_generation(source, pad_id=1, eos_id=2, start_id=2)
