"""Files as the models of Firefox come in: weights in bytes, written from a Marian model in fp32, and shortlists."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from tests import marian_npz
from tests.hugging_face_files import sentences, train

FLOAT32, INT8, INTGEMM8 = 0x0404, 0x0101, 0x4101
SETTINGS = "special:model.yml"
MAGIC = 0xF11A48D5013417F5
_ALIGNED = 256


class Files(NamedTuple):
    """A model of random weights.

    Attributes:
        folder: where its files lie, named as those of Firefox.
        weights: in fp32, of which those in the file are made.
        settings: what the model says of itself.
        source: the SentencePiece model of the source.
        target: that of the target.
    """

    folder: Path
    weights: dict[str, NDArray[Any]]
    settings: dict[str, Any]
    source: SentencePieceProcessor
    target: SentencePieceProcessor


def write_folder(
    folder: Path,
    *,
    pair: str = "ende",
    apart: bool = False,
    seed: int = 0,
    with_shortlist: bool = False,
    **changed: Any,
) -> Files:
    """Write a model; `changed` are settings, with low lines in the place of hyphens."""
    folder.mkdir(parents=True)
    sides = ["src", "trg"] if apart else [""]
    contents = [vocabulary(side) for side in sides]
    for side, content in zip(sides, contents, strict=True):
        (folder / f"{side}vocab.{pair}.spm").write_bytes(content)
    processors = [SentencePieceProcessor(model_proto=content) for content in contents]
    source, target = processors[0], processors[-1]
    settings = marian_npz.SETTINGS | marian_npz.STUDENT | {name.replace("_", "-"): v for name, v in changed.items()}
    settings |= {"dim-vocabs": [len(source), len(target)], "tied-embeddings-all": not apart, "tied-embeddings": apart}
    weights = marian_npz.random_weights(settings, seed, separate=apart, tied=True)
    del weights[SETTINGS]
    factors = {name: 20.0 for name in weights if is_quantized(name) and not (apart and name == "encoder_Wemb")}
    write(folder / f"model.{pair}.intgemm.alphas.bin", weights, settings, factors)
    if with_shortlist:
        draw = np.random.default_rng(seed)
        translations = [draw.choice(len(target), 9, replace=False).tolist() for _ in range(len(source))]
        (folder / f"lex.50.50.{pair}.s2t.bin").write_bytes(shortlist(translations))
    return Files(folder, weights, settings, source, target)


@cache
def vocabulary(side: str) -> bytes:
    """Train the SentencePiece model of a side, or of both, with the ids and the options of Firefox."""
    english, german = sentences()
    lines = {"src": english, "trg": german}.get(side, [*english, *german])
    size = 400 if side == "src" else 450
    return train(
        lines, vocab_size=size, eos_id=0, unk_id=1, bos_id=-1, pad_id=-1, byte_fallback=True, split_digits=True
    )


def is_quantized(name: str) -> bool:
    """Whether a weight is in bytes: every matrix, that is, but neither biases nor norms."""
    return name.endswith("Wemb") or name.rpartition("_")[2] in ("W", "Wf", "Wq", "Wk", "Wv", "Wo", "W1", "W2")


def write(
    file: Path, weights: Mapping[str, NDArray[Any]], settings: Mapping[str, Any], factors: Mapping[str, float]
) -> Path:
    """Write a model.

    Args:
        file: to write.
        weights: in fp32, by Marian's names.
        settings: what the model says of itself.
        factors: by which the inputs of each matrix are multiplied before they are rounded to bytes.
    """
    said = yaml.safe_dump(dict(settings)).encode() + b"\0"
    items = [(SETTINGS, INT8, (len(said),), said)]
    for name, values in weights.items():
        values = np.asarray(values, np.float32)
        if is_quantized(name):
            factor = np.float32(127 / np.abs(values).max())
            stored = values if name.endswith("Wemb") else values.T
            levels = np.clip(np.rint(stored * factor), -127, 127).astype(np.int8)
            items.append((name, INTGEMM8, values.shape, levels.tobytes() + factor.tobytes()))
        else:
            items.append((name, FLOAT32, values.shape, values.tobytes()))
    # The factor of the output has this name, too: a shortlist makes a nameless matrix of some of its columns.
    [output] = [name for name in factors if name.endswith("Wemb")]
    factors = {**factors, "none": factors[output]}
    items += [(f"{name}_QuantMultA", FLOAT32, (1, 1), np.float32(factor).tobytes()) for name, factor in factors.items()]
    file.write_bytes(packed(items))
    return file


def packed(items: Sequence[tuple[str, int, tuple[int, ...], bytes]], errors: str = "strict") -> bytes:
    """Join names, types, shapes and data as `common/binary.cpp` of Marian does."""
    names = [name.encode(errors=errors) + b"\0" for name, *_ in items]
    padded = [data + bytes(-len(data) % _ALIGNED) for *_, data in items]
    head = struct.pack("<QQ", 1, len(items))
    for name, (_, kind, shape, _), data in zip(names, items, padded, strict=True):
        head += struct.pack("<QQQQ", len(name), kind, len(shape), len(data))
    head += b"".join(names)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    gap = -(len(head) + 8) % _ALIGNED
    return head + struct.pack("<Q", gap) + bytes(gap) + b"".join(padded)


def shortlist(translations: Iterable[Iterable[int]], first: int = 50, best: int = 50) -> bytes:
    """Write a shortlist.

    Args:
        translations: of each source piece, ids of the target vocabulary.
        first: so many ids, from 0 on, are candidates of every source.
        best: as many translations a piece has at most.
    """
    rows = [sorted(row) for row in translations]
    offsets = np.cumsum([0, *map(len, rows)]).astype("<u8")
    ids = np.array([id_ for row in rows for id_ in row], "<u4")
    body = struct.pack("<QQQQ", first, best, len(offsets), len(ids)) + offsets.tobytes() + ids.tobytes()
    return struct.pack("<QQ", MAGIC, checksum(body)) + body


def checksum(body: bytes) -> int:
    """Compute what Marian calls the checksum of a shortlist, over its numbers of eight bytes."""
    seed = 0
    for number in np.frombuffer(body[: len(body) // 8 * 8], "<u8").tolist():
        seed ^= (number + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & 0xFFFFFFFFFFFFFFFF
    return seed
