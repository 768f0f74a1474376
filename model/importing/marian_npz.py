"""Marian's own format: model.npz and decoder.yml, as in OPUS-MT releases, and Firefox models.

The meaning of the settings: https://marian-nmt.github.io/docs/cmd/marian/.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from dragoman.errors import DataError
from dragoman.shortlist import Shortlist
from dragoman.tokenizer import SOURCE_VOCABULARY, TARGET_VOCABULARY, VOCABULARY
from model.importing import bart_like, marian, tokenizers
from model.importing.family import Family, Network, Texts, Wanted
from model.importing.generation import Generation
from model.importing.marian import OwnVocabulary
from model.importing.marian_file import MarianWeights
from model.importing.source import DECODER, Source
from model.safetensors_file import Weights

_MODELS: Final = ("source.spm", "target.spm")  # used with vocabularies that are no SentencePiece models
_PAD: Final = "<pad>"
_RECURRENT: Final = "rnn"  # a value of `transformer-decoder-autoreg`

# Other values of these settings would be another model.
_FIXED: Final[Mapping[str, tuple[Any, ...]]] = {
    "type": ("transformer",),
    "input-types": ([], ["sequence"]),
    "right-left": (False,),
    "skip": (False,),
    "ulr": (False,),
    "lemma-dim-emb": (0,),
    "output-omit-bias": (False,),
    "transformer-alibi-shift": (False,),
    "transformer-alibi-trainable": (False,),
    "transformer-attention-mask": ("default",),
    "transformer-decoder-autoreg": ("self-attention", _RECURRENT),
    "transformer-decoder-dim-ffn": (0,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-disable-position-embeddings": (False,),
    "transformer-ffn-depth": (2,),
    "transformer-no-affine": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-projection": (False,),
    "transformer-pool": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,),
    "transformer-train-positions": (False,),
    "transformer-train-type-embeddings": (False,),
}
_FIXED_OF_RECURRENCE: Final[Mapping[str, tuple[Any, ...]]] = {"dec-cell": ("ssru",), "layer-normalization": (False,)}
# The settings that this module reads, and those without effect on a Transformer's arithmetic.
_KNOWN_WORDS: Final = """
dec-depth dim-emb dim-vocabs enc-depth tied-embeddings tied-embeddings-all tied-embeddings-src version
transformer-dim-ffn transformer-ffn-activation transformer-heads transformer-postprocess transformer-postprocess-emb
transformer-postprocess-top transformer-preprocess transformer-depth-scaling transformer-guided-alignment-layer
transformer-aan-activation transformer-aan-depth transformer-aan-nogate transformer-dim-aan
bert-train-type-embeddings bert-type-vocab-size dec-cell dec-cell-base-depth dec-cell-high-depth dim-rnn enc-cell
enc-cell-depth enc-type factors-combine factors-dim-emb layer-normalization lemma-dependency ulr-dim-emb
ulr-trainable-transformation unlikelihood-loss original-type char-conv-filters-num char-conv-filters-widths
char-highway char-stride concat-factors dec-pool-kernel comment separator-symbol
"""
_KNOWN: Final = frozenset(_KNOWN_WORDS.split()) | _FIXED.keys()
# Marian's gelu is x * sigmoid(1.702 x).
_ACTIVATIONS: Final = {"swish": "swish", "relu": "relu", "gelu": "quick_gelu"}
_POST: Final = ("", "dan", "")
_NORMS: Final[Mapping[tuple[str, str, str], Literal["pre", "post"]]] = {_POST: "post", ("n", "da", "n"): "pre"}


def check(source: Source) -> list[str]:
    """Refuse unsupported settings; see `Family.check`."""
    [file] = source.weight_files()
    settings = {"dec-cell": "gru"} | MarianWeights(file).settings
    recurs = _recurs(settings)
    fixed = {**_FIXED, **(_FIXED_OF_RECURRENCE if recurs else {})}
    for key, value in settings.items():
        if key in fixed and value not in fixed[key]:
            raise DataError(f"{file}: {key} is {value!r:.80}; only {' or '.join(map(repr, fixed[key]))} is supported")
        if key not in _KNOWN:
            raise DataError(f"{file}: {key} is unknown here, and may change what the model computes: {value!r:.80}")
    if str(name := settings.get("transformer-ffn-activation", "swish")) not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise DataError(f"{file}: transformer-ffn-activation is {name!r:.40}; supported are {known}")
    orders = [_POST] if recurs else list(_NORMS)
    if (order := _order(settings)) not in orders:
        raise DataError(
            f"{file}: transformer-preprocess, -postprocess and -postprocess-top are {', '.join(map(repr, order))}; "
            f"supported are {' or '.join(', '.join(map(repr, known)) for known in orders)}"
        )
    if (after := settings.get("transformer-postprocess-emb", "d")) not in ("", "d", "n", "nd"):
        raise DataError(f"{file}: transformer-postprocess-emb is {after!r:.40}; supported are d and nd")
    return []


def texts(source: Source, wanted: Wanted) -> Texts:
    """Read the SentencePiece models, the vocabularies that decoder.yml names, and a shortlist; see `Family.texts`."""
    files = _vocabulary_files(source)
    target = _ids(source, files[-1])
    start = len(target)
    shortlist = None
    if name := source.shortlist():
        shortlist = source.bytes(name)
        Shortlist(shortlist, source.folder / name).check(len(_ids(source, files[0])), start)
    target[_PAD] = start  # after all pieces, like the row of zeros
    if files[0] == files[1]:
        vocabularies = [OwnVocabulary(VOCABULARY, files[0], target, start + 1)]
    else:
        ids = _ids(source, files[0])
        vocabularies = [
            OwnVocabulary(SOURCE_VOCABULARY, files[0], ids, len(ids)),
            OwnVocabulary(TARGET_VOCABULARY, files[1], target, start + 1),
        ]
    first, last = (file if _is_model(file) else side for file, side in zip(files, _MODELS, strict=True))
    found = marian.texts_of(source, wanted, vocabularies, (first, last), _generation(source, target, start))
    return replace(found, shortlist=shortlist)


def network(source: Source, weights: Weights, unknown_id: int) -> Network:
    """Map the weights; see `Family.network`."""
    assert isinstance(weights, MarianWeights)
    settings = weights.settings
    recurs = _recurs(settings)
    files = _vocabulary_files(source)
    target = _ids(source, files[1])
    start = len(target)
    source_size = start if files[0] == files[1] else len(_ids(source, files[0]))
    separate = "model.shared.weight" not in set(weights.names)
    config = {
        "vocab_size": source_size if separate else source_size + 1,
        "decoder_vocab_size": start + 1,
        "encoder_attention_heads": settings.get("transformer-heads"),
        "decoder_attention_heads": settings.get("transformer-heads"),
        "encoder_ffn_dim": settings.get("transformer-dim-ffn"),
        "decoder_ffn_dim": settings.get("transformer-dim-ffn"),
        "encoder_layers": settings.get("enc-depth"),
        "decoder_layers": settings.get("dec-depth"),
        "activation_function": _ACTIVATIONS[settings.get("transformer-ffn-activation", "swish")],
        "d_model": settings.get("dim-emb"),
    }
    layout = bart_like.Layout(
        norm=_NORMS[_order(settings)],
        embedding_norm="n" in settings.get("transformer-postprocess-emb", "d"),
        positions="sinusoidal_halves",
        position_offset=0,
        # Marian's defaults.
        defaults={"d_model": 512, "heads": 8, "d_ff": 2048, "layers": 6, "max_positions": 512},
        default_activation="swish",
        default_scale=True,
        separate=separate,
        decoder_cell="ssru" if recurs else "attention",
        norm_epsilon=1e-6,
    )
    generation = replace(_generation(source, target, start), banned=(unknown_id, start))
    found = bart_like.network(replace(source, config=config), weights, layout, generation, unknown_id, start)
    return _with_gate_biases(found, weights) if recurs else found


FAMILY: Final = Family("Marian", check, texts, network)


def _recurs(settings: Mapping[str, Any]) -> bool:
    return settings.get("transformer-decoder-autoreg") == _RECURRENT


def _with_gate_biases(network: Network, weights: Weights) -> Network:
    """Make the biases of each recurrence: Marian has only that of the forget gate.

    Raises:
        DataError: a bias is missing.
    """
    recipes, read = dict(network.weights), []
    for layer in range(network.config.decoder_layers):
        name = f"model.decoder.layers.{layer}.recurrence.forget.bias"
        if name not in set(weights.names):
            raise DataError(f"the weights have no {name}")
        forget = weights.read(name)
        recipes[f"decoder.{layer}.recurrence.gate_input.bias"] = np.concatenate([forget, np.zeros_like(forget)])
        read.append(name)
    return replace(network, weights=recipes, ignored=network.ignored.union(read))


def _generation(source: Source, target: Mapping[str, int], start_id: int) -> Generation:
    """Give the decoding settings: a translation begins from the row of zeros, which is no source piece."""
    if (eos := target.get("</s>")) is None:
        raise DataError(f"{source.folder}: no </s> in {_vocabulary_files(source)[-1]}")
    return Generation(pad_id=eos, eos_id=eos, start_id=start_id, forced_id=None, banned=(), warnings=())


def _vocabulary_files(source: Source) -> list[str]:
    """List the vocabulary files of source and target."""
    files = source.named("vocabs")
    if len(files) != len(_MODELS):
        raise DataError(f"{source.folder / DECODER}: vocabs must name two files, names {len(files)}")
    return files


def _is_model(file: str) -> bool:
    """Tell whether a vocabulary is a SentencePiece model; its ids are then those of Marian."""
    return file.endswith(".spm")


def _ids(source: Source, file: str) -> dict[str, int]:
    """Read a vocabulary: the id of each piece.

    Raises:
        DataError: the file is missing, or its ids do not count from 0.
    """
    if not source.has(file):
        raise DataError(f"{source.folder}: no {file}, which {DECODER} names")
    if _is_model(file):
        processor = tokenizers.processor(source.bytes(file), source.folder / file)
        pieces = [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]
        return {piece: id_ for id_, piece in enumerate(pieces)}
    ids = {piece: int(id_) if str(id_).isdecimal() else -1 for piece, id_ in source.yaml(file).items()}
    if sorted(ids.values()) != list(range(len(ids))):
        raise DataError(f"{source.folder / file}: its ids are not those from 0 to {len(ids) - 1}")
    return ids


def _order(settings: Mapping[str, Any]) -> tuple[str, str, str]:
    defaults = {"transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-top": ""}
    before, after, top = (str(settings.get(key) or default) for key, default in defaults.items())
    return before, after, top
