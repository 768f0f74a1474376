"""Models of CTranslate2 for one language pair, and Argos packages, which contain one model each."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks
from dragoman.tokenizer import JOINT, SOURCE, SOURCE_VOCABULARY, TARGET, TARGET_VOCABULARY, VOCABULARY
from model.config import Activation, TransformerConfig
from model.importing import languages, tokenizers
from model.importing.bart_like import BANNED
from model.importing.ct2_file import Ct2Weights
from model.importing.family import Family, Network, Recipe, Texts, Wanted
from model.importing.settings import configuration
from model.importing.source import CONFIG, CT2_MODEL, Source
from model.importing.weights import are_equal
from model.safetensors_file import Weights

_BIAS: Final = "decoder/projection/bias"
_METADATA: Final = "metadata.json"  # of Argos
# By CTranslate2's numbers.
_ACTIVATIONS: Final[Mapping[int, Activation]] = {
    0: "relu",
    1: "gelu_tanh",
    2: "silu",
    3: "gelu",
    4: "gelu_sigmoid",
    5: "tanh",
}
_DEFAULTS: Final = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "decoder_start_token": "<s>"}
_ORIGINAL: Final = "import the model that it was converted from"
# Unsupported variants, by the beginning of a variable's path below a layer or a side.
_UNSUPPORTED: Final = {
    "relative": "relative positions",
    "rotary": "rotary positions",
    "linear_0_noact": "gated feed-forward layers",
    "alibi": "ALiBi positions",
    "post_": "normalization on both sides of a layer",
    "num_heads_kv": "shared keys and values",
}


def check(source: Source) -> list[str]:
    """Refuse unsupported settings; see `Family.check`."""
    if source.config.get("decoder_start_token", "") is None:
        raise DataError(f"{source.folder}: a CTranslate2 model of many languages; {_ORIGINAL}")
    return []


def texts(source: Source, wanted: Wanted) -> Texts:
    """Read the SentencePiece models and the vocabularies; see `Family.texts`."""
    settings = _settings(source)
    files, vocabularies = _sentencepiece(source), _vocabularies(source)
    control = {settings[f"{name}_token"] for name in ("bos", "eos", "decoder_start")} | {"<blank>", "<pad>"}
    from_zeros = Ct2Weights(source.weight_files()[0]).from_zeros
    for name, (file, pieces) in vocabularies.items():
        ids = {piece: id_ for id_, piece in enumerate(pieces)}
        if len(ids) != len(pieces):
            raise DataError(f"{source.folder / file}: a piece is there twice")
        rows = len(pieces) + from_zeros
        own = tokenizers.vocabulary_file(source, file, ids, rows, control - {"<unk>"}, settings["unk_token"])
        files[name] = tokenizers.as_file(own)
    models, names = [name for name in files if name.endswith(".model")], list(vocabularies)
    for place in (0, -1):
        tokenizers.check_fit(files[models[place]], files[names[place]], source.folder)
    pieces_of_source, pieces_of_target = (list(vocabularies.values())[place][1] for place in (0, -1))
    metadata = source.json(_METADATA)
    sides = [
        list(asked) or ([metadata[key]] if metadata.get(key) else [])
        for key, asked in (("from_code", wanted.sources), ("to_code", wanted.targets))
    ]
    if not all(len(side) == 1 for side in sides):
        raise DataError(
            f"{source.folder}: give one --source-language and one --target-language; no {_METADATA} says them"
        )
    ends = bool(settings.get("add_source_eos"))
    eos_ids = {_id(source, pieces, settings["eos_token"]) for pieces in (pieces_of_source, pieces_of_target)}
    if ends and len(eos_ids) > 1:
        raise DataError(f"{source.folder}: {settings['eos_token']} has other ids in the source and in the target")
    before = (_id(source, pieces_of_source, settings["bos_token"]),) if settings.get("add_source_bos") else ()
    marks = {sides[0][0]: LanguageMarks(source_prefix=before)}
    found, warnings = languages.make(sides[0], sides[1], marks, wanted)
    found = found.model_copy(update={"source_ends": ends})
    return Texts(files, _id(source, pieces_of_target, settings["unk_token"]), found, warnings)


def network(source: Source, weights: Weights, unknown_id: int) -> Network:
    """Map the weights; see `Family.network`."""
    assert isinstance(weights, Ct2Weights)
    _check_variables(source, weights)
    settings, target = _settings(source), list(_vocabularies(source).values())[-1][1]
    source_rows, width = weights.shape(_embeddings(weights, "encoder"))
    target_rows, _ = weights.shape("decoder/embeddings/weight")
    if target_rows != len(target) + weights.from_zeros:
        raise DataError(f"{source.folder}: {target_rows} rows of embeddings for {len(target)} pieces")
    eos_id = _id(source, target, settings["eos_token"])
    start_id = len(target) if weights.from_zeros else _id(source, target, settings["decoder_start_token"])
    shares = are_equal(weights, _embeddings(weights, "encoder"), "decoder/embeddings/weight")
    ties = are_equal(weights, "decoder/embeddings/weight", "decoder/projection/weight")
    has_table = weights.has("encoder/position_encodings/encodings")
    has_bias = weights.has(_BIAS)
    layers = {side: _count(weights, side) for side in ("encoder", "decoder")}
    config = configuration(
        source,
        source_vocabulary_size=source_rows,
        target_vocabulary_size=target_rows,
        d_model=width,
        heads=_heads(weights, "encoder"),
        decoder_heads=_heads(weights, "decoder"),
        d_ff=weights.shape("encoder/layer_0/ffn/linear_0/weight")[0],
        decoder_d_ff=weights.shape("decoder/layer_0/ffn/linear_0/weight")[0],
        encoder_layers=layers["encoder"],
        decoder_layers=layers["decoder"],
        norm="pre" if _setting(weights, "pre_norm", 1) else "post",
        norm_epsilon=settings.get("layer_norm_epsilon") or 1e-5,
        activation=_activation(source, weights),
        # Without a table, CTranslate2 computes the positions of tensor2tensor, and counts from 1.
        positions="learned" if has_table else "sinusoidal_halves",
        position_offset=0 if has_table else 1,
        max_positions=weights.shape("encoder/position_encodings/encodings")[0] if has_table else 512,
        scale_embedding=_scales(source, weights, width),
        embedding_norm=weights.has("encoder/layernorm_embedding/gamma"),
        share_embeddings=shares,
        tie_output=ties,
        output_bias=has_bias or weights.from_zeros,
        pad_id=eos_id,
        start_id=start_id,
        eos_id=eos_id,
        unknown_id=unknown_id,
    )
    recipes: dict[str, Recipe] = {
        ours: (weights.original(theirs),) for ours, theirs in _names(config, weights, layers) if weights.has(theirs)
    }
    tied = {_embeddings(weights, "encoder"), "decoder/embeddings/weight", "decoder/projection/weight", _BIAS}
    if weights.from_zeros:
        bias = weights.read(_BIAS).astype(np.float32) if has_bias else np.zeros(target_rows, np.float32)
        bias[start_id] = BANNED
        recipes["output.bias"] = bias
    return Network(config, recipes, ignored=frozenset(map(weights.original, tied)))


FAMILY: Final = Family("CTranslate2", check, texts, network)


def _names(config: TransformerConfig, weights: Ct2Weights, layers: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Give the name of each weight in the checkpoint with its name in the file."""
    yield "source_embedding.weight", _embeddings(weights, "encoder")
    if not config.share_embeddings:
        yield "target_embedding.weight", "decoder/embeddings/weight"
    if not config.tie_output:
        yield "output.weight", "decoder/projection/weight"
    yield "output.bias", _BIAS
    for ours, side in (("source", "encoder"), ("target", "decoder")):
        yield f"{ours}_positions.table", f"{side}/position_encodings/encodings"
        yield from _norm(f"{ours}_norm", f"{side}/layernorm_embedding")
        if config.norm == "pre":
            yield from _norm(f"{side}_norm", f"{side}/layer_norm")
        for number in range(layers[side]):
            yield from _layer_names(f"{side}.{number}", f"{side}/layer_{number}", crosses=side == "decoder")


def _layer_names(ours: str, theirs: str, *, crosses: bool) -> Iterator[tuple[str, str]]:
    yield from _norm(f"{ours}.self_residual.norm", f"{theirs}/self_attention/layer_norm")
    yield from _linear(f"{ours}.self_attention.query_key_value", f"{theirs}/self_attention/linear_0")
    yield from _linear(f"{ours}.self_attention.output", f"{theirs}/self_attention/linear_1")
    if crosses:
        yield from _norm(f"{ours}.cross_residual.norm", f"{theirs}/attention/layer_norm")
        for name, number in (("query", 0), ("key_value", 1), ("output", 2)):
            yield from _linear(f"{ours}.cross_attention.{name}", f"{theirs}/attention/linear_{number}")
    yield from _norm(f"{ours}.feed_forward_residual.norm", f"{theirs}/ffn/layer_norm")
    yield from _linear(f"{ours}.feed_forward.expand", f"{theirs}/ffn/linear_0")
    yield from _linear(f"{ours}.feed_forward.contract", f"{theirs}/ffn/linear_1")


def _norm(ours: str, theirs: str) -> Iterator[tuple[str, str]]:
    yield f"{ours}.weight", f"{theirs}/gamma"
    yield f"{ours}.bias", f"{theirs}/beta"


def _linear(ours: str, theirs: str) -> Iterator[tuple[str, str]]:
    yield f"{ours}.weight", f"{theirs}/weight"
    yield f"{ours}.bias", f"{theirs}/bias"


def _check_variables(source: Source, weights: Ct2Weights) -> None:
    if weights.specification != "TransformerSpec":
        raise DataError(f"{source.folder}: a {weights.specification} of CTranslate2; only a TransformerSpec translates")
    for name in weights.names:
        part = name.rsplit("/", 2)
        for begin, what in _UNSUPPORTED.items():
            if any(step.startswith(begin) for step in part[1:]):
                raise DataError(f"{source.folder}: {what} of CTranslate2 are not supported ({name}); {_ORIGINAL}")


def _setting(weights: Ct2Weights, name: str, default: float) -> float:
    """Read a setting that encoder and decoder share; older files have it at the root."""
    return weights.setting(f"decoder/{name}", weights.setting(name, default))


def _activation(source: Source, weights: Ct2Weights) -> Activation:
    number = int(_setting(weights, "activation", 0))
    if number not in _ACTIVATIONS:
        raise DataError(f"{source.folder}: the activation {number} of CTranslate2 is not supported; {_ORIGINAL}")
    return _ACTIVATIONS[number]


def _heads(weights: Ct2Weights, side: str) -> int:
    return int(weights.setting(f"{side}/num_heads", weights.setting("num_heads", 8)))


def _embeddings(weights: Ct2Weights, side: str) -> str:
    old, new = f"{side}/embeddings/weight", f"{side}/embeddings_0/weight"
    return new if weights.has(new) else old


def _count(weights: Ct2Weights, side: str) -> int:
    count = 0
    while weights.has(f"{side}/layer_{count}/ffn/linear_0/weight"):
        count += 1
    return count


def _scales(source: Source, weights: Ct2Weights, width: int) -> bool:
    scale = _setting(weights, "scale_embeddings", 1)
    if scale in (0, 1):
        return bool(scale)
    if math.isclose(scale, math.sqrt(width), rel_tol=1e-6):
        return True
    raise DataError(
        f"{source.folder}: embeddings are scaled by {scale:g}; only 1 and the root of the width are supported"
    )


def _settings(source: Source) -> dict[str, Any]:
    return _DEFAULTS | {key: value for key, value in source.config.items() if value is not None}


def _id(source: Source, pieces: list[str], piece: str) -> int:
    if piece not in pieces:
        raise DataError(f"{source.folder}: no piece {piece!r:.40}, which {CONFIG} names")
    return pieces.index(piece)


def _sentencepiece(source: Source) -> dict[str, bytes]:
    """Read the SentencePiece models: that of Argos, or those copied into the folder of the model."""
    inside = source.base
    for joint in (
        "sentencepiece.model",
        f"{inside}sentencepiece.model",
        f"{inside}spm.model",
        f"{inside}tokenizer.model",
    ):
        if source.has(joint):
            return {JOINT: tokenizers.sentencepiece_file(source, joint)}
    for ends in ("source.spm", "target.spm"), ("source.model", "target.model"):
        if all(source.has(inside + end) for end in ends):
            names = zip((SOURCE, TARGET), ends, strict=True)
            return {name: tokenizers.sentencepiece_file(source, inside + end) for name, end in names}
    hint = "; packages with BPE (bpe.model) need Moses" if source.has("bpe.model") else ""
    raise DataError(f"{source.folder}: no sentencepiece.model, nor source.spm and target.spm{hint}")


def _vocabularies(source: Source) -> dict[str, tuple[str, list[str]]]:
    """Read the vocabularies: for each name in the checkpoint, the file and its pieces."""
    inside = source.base
    for end in (".json", ".txt"):
        if source.has(shared := f"{inside}shared_vocabulary{end}"):
            return {VOCABULARY: (shared, _pieces(source, shared))}
        both = [f"{inside}{side}_vocabulary{end}" for side in ("source", "target")]
        if all(map(source.has, both)):
            names = (SOURCE_VOCABULARY, TARGET_VOCABULARY)
            return {name: (file, _pieces(source, file)) for name, file in zip(names, both, strict=True)}
    raise DataError(
        f"{source.folder}: no shared_vocabulary, nor source_vocabulary and target_vocabulary, beside {CT2_MODEL}"
    )


def _pieces(source: Source, name: str) -> list[str]:
    content = source.bytes(name)
    try:
        pieces = json.loads(content) if name.endswith(".json") else content.decode().splitlines()
    except ValueError as error:
        raise DataError(f"{source.folder / name}: no vocabulary: {error}") from error
    if not (isinstance(pieces, list) and all(isinstance(piece, str) for piece in pieces)):
        raise DataError(f"{source.folder / name}: must be a list of pieces")
    return pieces
