"""Marian in Hugging Face's format: OPUS-MT, for a language pair, or for many languages with marks such as >>deu<<."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks, Languages
from dragoman.tokenizer import SOURCE, SOURCE_VOCABULARY, TARGET, TARGET_VOCABULARY, VOCABULARY
from model.importing import bart_like, languages, tokenizers
from model.importing.family import Family, Network, Texts, Wanted
from model.importing.generation import Generation, read_generation
from model.importing.settings import activation, check_keys, flag, whole
from model.importing.source import CONFIG, Source
from model.safetensors_file import Weights
from model.tables import sinusoids

# Keys in older files; BART had these switches, and Marian always has these values.
_FIXED: Final = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 0,
}
_VOCABULARY_SIZE: Final = 58101
_PAD: Final = 58100
_MARK: Final = re.compile(r"^>>([^<>\s]+)<<$")
_CONTROL: Final = ("</s>", "<pad>", "<s>")
_POSITIONS: Final = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_FORMULA: Final = 1e-6  # the largest difference between the file's positions and the computed ones
_BPE: Final = "; OPUS-MT models of before 2020 need Moses and BPE (source.bpe), which are not supported"


class OwnVocabulary(NamedTuple):
    """A vocabulary of a model.

    Attributes:
        name: the name of its file in the checkpoint.
        file: the file in the folder, for errors.
        ids: the ids of its pieces.
        rows: the number of rows of the embedding.
    """

    name: str
    file: str
    ids: Mapping[str, int]
    rows: int


def check(source: Source) -> list[str]:
    """Refuse unsupported settings; see `Family.check`."""
    used = bart_like.USED | {"decoder_vocab_size", "share_encoder_decoder_embeddings"}
    check_keys(source, used, _FIXED, "MarianMTModel")
    activation(source, "activation_function", "gelu")
    return list(_generation(source).warnings)


def texts(source: Source, wanted: Wanted) -> Texts:
    """Read source.spm, target.spm and vocab.json; see `Family.texts`."""
    return texts_of(source, wanted, _vocabularies(source), ("source.spm", "target.spm"), _generation(source))


def texts_of(
    source: Source,
    wanted: Wanted,
    vocabularies: Sequence[OwnVocabulary],
    models: tuple[str, str],
    generation: Generation,
) -> Texts:
    """Combine SentencePiece models and vocabularies.

    Args:
        source: the folder.
        wanted: the languages given by the user.
        vocabularies: one for both sides, or one for each.
        models: the files of the SentencePiece models, of source and target.
        generation: the decoding settings.

    Raises:
        DataError: a file is missing, the files do not fit together, or the languages are unknown.
    """
    files = {
        side: tokenizers.sentencepiece_file(source, model, _BPE)
        for side, model in zip((SOURCE, TARGET), models, strict=True)
    }
    own = {
        each.name: tokenizers.vocabulary_file(
            source, each.file, each.ids, each.rows, {*_CONTROL, *filter(_MARK.match, each.ids)}
        )
        for each in vocabularies
    }
    files |= {name: tokenizers.as_file(pieces) for name, pieces in own.items()}
    first, last = vocabularies[0], vocabularies[-1]
    for side, model, each in zip((SOURCE, TARGET), models, (first, last), strict=True):
        tokenizers.check_fit(files[side], files[each.name], source.folder / model)
    if first.ids.get("</s>") != generation.eos_id:
        raise DataError(
            f"{source.folder}: </s> is {first.ids.get('</s>')} in {first.file}, eos_token_id {generation.eos_id}"
        )
    if last.ids.get("</s>") != generation.eos_id:
        raise DataError(f"{source.folder}: </s> has not the same id in {first.file} and {last.file}")
    forced = () if generation.forced_id is None else (generation.forced_id,)
    marks = {piece: id_ for piece, id_ in first.ids.items() if _MARK.match(piece)}
    found, warnings = _languages(source, first.file, wanted, marks, forced)
    return Texts(files, own[last.name].index("<unk>"), found, warnings)


def network(source: Source, weights: Weights, unknown_id: int) -> Network:
    """Map the weights; see `Family.network`."""
    generation = _generation(source)
    start = generation.pad_id if generation.start_id is None else generation.start_id
    layout = bart_like.Layout(
        norm="post",
        embedding_norm=False,
        positions="sinusoidal_paper_halves" if _is_formula(weights) else "learned",
        position_offset=0,
        defaults=bart_like.DEFAULTS,
        default_activation="gelu",
        default_scale=False,
        separate=not flag(source, "share_encoder_decoder_embeddings", True),
    )
    return bart_like.network(source, weights, layout, generation, unknown_id, start, ignored=_POSITIONS)


FAMILY: Final = Family("Marian", check, texts, network)


def _generation(source: Source) -> Generation:
    return read_generation(source, pad_id=_PAD, eos_id=0, start_id=None)


def _is_formula(weights: Weights) -> bool:
    """Tell whether the positions are computed ones: few files hold positions, some of them in half precision."""
    there = set(weights.names)
    for name in _POSITIONS:
        if name in there:
            table = weights.read(name).astype(np.float32)
            if table.ndim != 2 or table.shape[1] % 2:
                return False
            formula = sinusoids(len(table), table.shape[1], "sinusoidal_paper_halves")
            if not np.allclose(table, formula, rtol=0, atol=_FORMULA):
                return False
    return True


def _vocabularies(source: Source) -> list[OwnVocabulary]:
    """Read the vocabularies of a folder of Hugging Face."""
    settings = source.json(tokenizers.TOKENIZER_CONFIG)
    ids = tokenizers.json_ids(source, "vocab.json")
    rows = whole(source, "vocab_size", _VOCABULARY_SIZE)
    target_rows = whole(source, "decoder_vocab_size", rows)
    if not settings.get("separate_vocabs", source.has("target_vocab.json")):
        if rows != target_rows:
            raise DataError(
                f"{source.folder / CONFIG}: vocab_size {rows} and decoder_vocab_size {target_rows} differ, "
                "but there is one vocabulary"
            )
        return [OwnVocabulary(VOCABULARY, "vocab.json", ids, rows)]
    target = tokenizers.json_ids(source, "target_vocab.json")
    return [
        OwnVocabulary(SOURCE_VOCABULARY, "vocab.json", ids, rows),
        OwnVocabulary(TARGET_VOCABULARY, "target_vocab.json", target, target_rows),
    ]


def _languages(
    source: Source, file: str, wanted: Wanted, marks: dict[str, int], forced: tuple[int, ...]
) -> tuple[Languages, list[str]]:
    settings = source.json(tokenizers.TOKENIZER_CONFIG)
    by_name = languages.of_name(source.name)
    sides = {}
    for side, named, asked in (("source", by_name[0], wanted.sources), ("target", by_name[1], wanted.targets)):
        sides[side] = list(asked) or languages.split(str(settings.get(f"{side}_lang") or "")) or named
    tags = {
        mark[2:-2]: LanguageMarks(aliases=(mark,), target_tag=(id_,), target_prefix=forced)
        for mark, id_ in marks.items()
    }
    unsaid = [side for side in ("source", "target") if not sides[side] and not (tags and side == "target")]
    if unsaid:
        flags = [f"--{side}-language" for side in unsaid]
        raise DataError(f"{source.folder}: does not say its languages; give {' and '.join(flags)} (several: de,fr)")
    if not tags:
        if len(sides["target"]) > 1:
            raise DataError(
                f"{source.folder}: {len(sides['target'])} target languages, but {file} has no mark such as >>deu<<"
            )
        tags = {code: LanguageMarks(target_prefix=forced) for code in sides["target"]}
    return languages.make(sides["source"], list(tags), tags, wanted)
