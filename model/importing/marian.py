"""Marian as Hugging Face has it: OPUS-MT, for a language pair or for many languages with marks such as >>deu<<."""

import re
from typing import Final

import torch

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks, Languages
from dragoman.tokenizer import SOURCE, SOURCE_VOCABULARY, TARGET, TARGET_VOCABULARY, VOCABULARY
from model.importing import bart_like, languages, tokenizers
from model.importing.family import Family, Network, Texts, Wanted
from model.importing.generation import Generation, read_generation
from model.importing.settings import activation, check_keys, flag, whole
from model.importing.source import CONFIG, Source
from model.importing.weights import Weights
from model.positions import sinusoids

# What older files say; BART had these switches, and Marian the one value of each.
_FIXED: Final = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 0,
}
_DEFAULTS: Final = {"d_model": 1024, "heads": 16, "d_ff": 4096, "layers": 12, "max_positions": 1024}
_VOCABULARY_SIZE: Final = 58101
_PAD: Final = 58100
_MARK: Final = re.compile(r"^>>([^<>\s]+)<<$")
_CONTROL: Final = ("</s>", "<pad>", "<s>")
_POSITIONS: Final = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_FORMULA: Final = 1e-6  # as far the file's positions may be from the formula's
_BPE: Final = "; OPUS-MT models of before 2020 need Moses and BPE (source.bpe), which are not supported"


def check(source: Source) -> list[str]:
    """Refuse what cannot be had; see `Family.check`."""
    used = bart_like.USED | {"decoder_vocab_size", "share_encoder_decoder_embeddings"}
    check_keys(source, used, _FIXED, "MarianMTModel")
    activation(source, "activation_function", "gelu")
    return list(_generation(source).warnings)


def texts(source: Source, wanted: Wanted) -> Texts:
    """Read source.spm, target.spm and vocab.json; see `Family.texts`."""
    settings = source.json(tokenizers.TOKENIZER_CONFIG)
    rows, target_rows = _rows(source)
    generation = _generation(source)
    files = {
        SOURCE: tokenizers.sentencepiece_file(source, "source.spm", _BPE),
        TARGET: tokenizers.sentencepiece_file(source, "target.spm", _BPE),
    }
    ids = tokenizers.json_ids(source, "vocab.json")
    marks = [piece for piece in ids if _MARK.match(piece)]
    own = {
        name: tokenizers.vocabulary_file(source, file, pieces, size, {*_CONTROL, *filter(_MARK.match, pieces)})
        for name, file, pieces, size in _vocabularies(source, settings, ids, rows, target_rows)
    }
    files |= {name: tokenizers.as_file(pieces) for name, pieces in own.items()}
    names = list(own)
    tokenizers.check_fit(files[SOURCE], files[names[0]], source.folder / "source.spm")
    tokenizers.check_fit(files[TARGET], files[names[-1]], source.folder / "target.spm")
    if ids.get("</s>") != generation.eos_id:
        raise DataError(f"{source.folder}: </s> is {ids.get('</s>')} in vocab.json, eos_token_id {generation.eos_id}")
    forced = () if generation.forced_id is None else (generation.forced_id,)
    found, warnings = _languages(source, wanted, {mark: ids[mark] for mark in marks}, forced)
    unknown = own[names[-1]].index("<unk>")
    return Texts(files, unknown, found, warnings)


def network(source: Source, weights: Weights, unknown_id: int) -> Network:
    """Map the weights; see `Family.network`."""
    generation = _generation(source)
    start = generation.pad_id if generation.start_id is None else generation.start_id
    layout = bart_like.Layout(
        norm="post",
        embedding_norm=False,
        positions="sinusoidal_paper_halves" if _is_formula(weights) else "learned",
        position_offset=0,
        defaults=_DEFAULTS,
        default_activation="gelu",
        default_scale=False,
        separate=not flag(source, "share_encoder_decoder_embeddings", True),
    )
    return bart_like.network(source, weights, layout, generation, unknown_id, start, ignored=_POSITIONS)


FAMILY: Final = Family("Marian", check, texts, network)


def _generation(source: Source) -> Generation:
    return read_generation(source, pad_id=_PAD, eos_id=0, start_id=None)


def _rows(source: Source) -> tuple[int, int]:
    rows = whole(source, "vocab_size", _VOCABULARY_SIZE)
    return rows, whole(source, "decoder_vocab_size", rows)


def _is_formula(weights: Weights) -> bool:
    """Tell whether the positions are those of the formula: few files hold them, and some in half precision."""
    there = set(weights.names)
    for name in _POSITIONS:
        if name in there:
            rows, width = weights.shape(name)
            table = sinusoids(rows, width, "sinusoidal_paper_halves")
            if not torch.allclose(weights.read(name).float(), table, rtol=0, atol=_FORMULA):
                return False
    return True


def _vocabularies(
    source: Source, settings: dict[str, object], ids: dict[str, int], rows: int, target_rows: int
) -> list[tuple[str, str, dict[str, int], int]]:
    """List the vocabularies: their file here, that of the folder, its content, rows of the model."""
    if not settings.get("separate_vocabs", source.has("target_vocab.json")):
        if rows != target_rows:
            raise DataError(
                f"{source.folder / CONFIG}: vocab_size {rows} and decoder_vocab_size {target_rows} differ, "
                "but there is one vocabulary"
            )
        return [(VOCABULARY, "vocab.json", ids, rows)]
    target = tokenizers.json_ids(source, "target_vocab.json")
    if target.get("</s>") != ids.get("</s>"):
        raise DataError(f"{source.folder}: </s> has not the same id in vocab.json and target_vocab.json")
    return [
        (SOURCE_VOCABULARY, "vocab.json", ids, rows),
        (TARGET_VOCABULARY, "target_vocab.json", target, target_rows),
    ]


def _languages(
    source: Source, wanted: Wanted, marks: dict[str, int], forced: tuple[int, ...]
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
                f"{source.folder}: {len(sides['target'])} target languages, but vocab.json has no mark such as >>deu<<"
            )
        tags = {code: LanguageMarks(target_prefix=forced) for code in sides["target"]}
    return languages.make(sides["source"], list(tags), tags, wanted)
