"""Trains small students with Marian, and compares what Marian, Firefox's engine and this project make of their weights.

    python -m tests.peers.marian --pairs train.tsv --texts test.tsv --out DIR

It needs `pymarian` (Marian itself) and `fxtranslate` (Firefox's engine), both from PyPI.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import fxtranslate
import numpy as np
import torch
import yaml
from sentencepiece import SentencePieceProcessor
from tqdm import tqdm

from dragoman.shortlist import Shortlist
from model.checkpoint import load_checkpoint
from model.corpus import read_corpus
from model.decoding import greedy
from model.importing.family import Wanted
from model.importing.marian_bin import MarianBin
from model.importing.run import import_folder
from model.transformer import Transformer
from tests import marian_bin
from tests.hugging_face_files import train as train_pieces
from tests.peers.student import EOS, Student, exact, input_factors, saturating

BEAM: Final = 4
_LENGTH_FACTOR: Final = 3  # Marian's limit of ids, times the length of the source
_CALIBRATION: Final = 100  # sentences by which the inputs of products are scaled
_TRANSLATIONS: Final = 30  # of a piece, in the shortlist


@dataclass(frozen=True)
class Shape:
    """A model to train.

    Attributes:
        encoder_layers: as published.
        decoder_layers: likewise.
        width: a fraction of the published one.
        ffn: likewise.
        apart: whether each side has a vocabulary.
        recurrent: whether the decoder is that of a student.
    """

    encoder_layers: int
    decoder_layers: int
    width: int = 64
    ffn: int = 192
    apart: bool = False
    recurrent: bool = True


SHAPES: Final = {
    "tiny": Shape(6, 2),
    "base-memory": Shape(6, 4),
    "base-memory, two vocabularies": Shape(6, 4, apart=True),
    "base": Shape(6, 2, width=96, ffn=256),
    "base, two vocabularies": Shape(6, 2, width=96, ffn=256, apart=True),
    "with self-attention": Shape(2, 2, recurrent=False),
}


class Trained(NamedTuple):
    """What a training left: a folder with model.npz and decoder.yml, and the pieces of both sides."""

    folder: Path
    source: SentencePieceProcessor
    target: SentencePieceProcessor

    def ids(self, text: str) -> list[int]:
        """Turn a source into ids."""
        return [*self.source.encode(text), EOS]

    def pieces(self, ids: Sequence[int]) -> str:
        """Write ids as Marian does when it is to leave pieces as they are."""
        return " ".join(self.target.id_to_piece(id_) for id_ in ids)

    def text(self, ids: Sequence[int]) -> str:
        """Write ids as Firefox's engine does, which leaves bytes as they are."""
        return "".join(self.target.id_to_piece(id_) for id_ in ids).replace("▁", " ").strip()


class Equal(NamedTuple):
    """Of how many sentences two translations are the same, and how close the best two ids were where they parted."""

    same: int
    total: int
    widest_gap: float = 0.0

    def __str__(self) -> str:
        gap = f" (ties of {self.widest_gap:.0e})" if self.same < self.total and self.widest_gap else ""
        return f"{self.same} of {self.total}{gap}"


def train(shape: Shape, pairs: tuple[Sequence[str], Sequence[str]], folder: Path, updates: int, pieces: int) -> Trained:
    """Train with Marian, unless it was done before; in a process of its own, which Marian ends at any error."""
    vocabularies = [folder / f"{side}vocab.spm" for side in (("src", "trg") if shape.apart else ("",))]
    if not (folder / "decoder.yml").exists():
        _train(shape, pairs, folder, vocabularies, updates, pieces)
    source, *_, target = [SentencePieceProcessor(model_file=str(file)) for file in [*vocabularies, vocabularies[-1]]]
    return Trained(folder, source, target)


def _train(
    shape: Shape, pairs: tuple[Sequence[str], Sequence[str]], folder: Path, vocabularies: list[Path], updates: int,
    pieces: int,
) -> None:  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for side, lines in zip(("source", "target"), pairs, strict=True):
        (folder / side).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options: dict[str, Any] = {
        "eos_id": 0, "unk_id": 1, "bos_id": -1, "pad_id": -1, "byte_fallback": True, "split_digits": True,
    }  # fmt: skip
    sides = [*pairs] if shape.apart else [[*pairs[0], *pairs[1]]]
    for file, lines in zip(vocabularies, sides, strict=True):
        file.write_bytes(train_pieces(list(lines), vocab_size=pieces, **options))
    decoder = "--transformer-decoder-autoreg rnn --dec-cell ssru" if shape.recurrent else ""
    line = f"""
        --type transformer --model {folder / "model.npz"} --train-sets {folder / "source"} {folder / "target"}
        --vocabs {vocabularies[0]} {vocabularies[-1]} {"--tied-embeddings" if shape.apart else "--tied-embeddings-all"}
        --dim-emb {shape.width} --transformer-dim-ffn {shape.ffn} --transformer-heads 8 {decoder}
        --enc-depth {shape.encoder_layers} --dec-depth {shape.decoder_layers} --transformer-ffn-activation relu
        --max-length 60 --mini-batch 64 --learn-rate 0.001 --lr-warmup 200 --optimizer-params 0.9 0.98 1e-09
        --label-smoothing 0.1 --after {updates}u --cpu-threads 1 --workspace 1000 --seed 1 --overwrite
        --tempdir {folder} --quiet
    """
    program = "import sys; from pymarian import Trainer; sys.exit(Trainer(sys.argv[1]).train())"
    subprocess.run([sys.executable, "-c", program, " ".join(line.split())], check=True)
    names = [file.name for file in vocabularies]
    (folder / "decoder.yml").write_text(yaml.safe_dump({"models": ["model.npz"], "vocabs": [names[0], names[-1]]}))


def of_marian(trained: Trained, texts: Sequence[str], beam: int) -> list[str]:
    """Translate with Marian in fp32, pieces as they are."""
    from pymarian import Translator

    names = yaml.safe_load((trained.folder / "decoder.yml").read_text())["vocabs"]
    vocabularies = " ".join(str(trained.folder / name) for name in names)
    line = f"""
        --models {trained.folder / "model.npz"} --vocabs {vocabularies} --beam-size {beam} --normalize 1
        --max-length-factor {_LENGTH_FACTOR} --mini-batch 1 --maxi-batch 1 --cpu-threads 1 --workspace 256
        --no-spm-decode --quiet --quiet-translation
    """
    return Translator(" ".join(line.split())).translate(list(texts))  # type: ignore[no-any-return]


def compare_fp32(trained: Trained, texts: Sequence[str], out: Path) -> tuple[Equal, Equal]:
    """Import the model, and compare greedy decoding and a beam search with Marian's."""
    import_folder(trained.folder, out, Wanted(("en",), ("de",)))
    model, tokenizer = load_checkpoint(out)
    sources = [[*tokenizer.encode(text), model.config.eos_id] for text in texts]
    assert sources == [trained.ids(text) for text in texts]
    searches: list[tuple[int, Callable[[list[int], int], list[int]]]] = [
        (1, lambda source, limit: greedy(model, [source], max_target_tokens=limit)[0]),
        (BEAM, lambda source, limit: beam_search(model, source, BEAM, limit)),
    ]
    results = []
    for beam, search in searches:
        expected = of_marian(trained, texts, beam)
        found = [
            search(source, _LENGTH_FACTOR * len(source))
            for source in tqdm(sources, f"beam {beam}", leave=False, disable=None)
        ]
        gaps = [
            gap(model, source, ids, trained.pieces(ids), theirs, trained) if beam == 1 else 0.0
            for source, ids, theirs in zip(sources, found, expected, strict=True)
            if trained.pieces(ids) != theirs
        ]
        results.append(Equal(len(texts) - len(gaps), len(texts), max(gaps, default=0.0)))
    return results[0], results[1]


@torch.inference_mode()
def gap(model: Transformer, source: list[int], ids: list[int], ours: str, theirs: str, trained: Trained) -> float:
    """Say how much better our id was than Marian's where both part."""
    ends = [*ids, EOS], [*(trained.target.piece_to_id(piece) for piece in theirs.split(" ") if piece), EOS]
    at = next(place for place, (one, other) in enumerate(zip(*ends, strict=False)) if one != other)
    started = torch.tensor([[model.config.start_id, *ids[:at]]])
    logits = model(torch.tensor([source]), torch.tensor([len(source)]), started)[0, -1]
    return float(logits[ends[0][at]] - logits[ends[1][at]])


@torch.inference_mode()
def beam_search(model: Transformer, source: list[int], size: int, limit: int) -> list[int]:
    """Search as Marian does: hypotheses that end leave the beam, which shrinks; the best mean log-probability wins."""
    lengths = torch.tensor([len(source)])
    memory = model.project_memory(model.encode(torch.tensor([source]), lengths))
    caches, rows, scores = model.new_caches(1, limit), [[model.config.start_id]], torch.zeros(1)
    ended: list[tuple[float, list[int]]] = []
    for step in range(limit):
        count = len(rows)
        repeated = [tuple(part.expand(count, *part.shape[1:]) for part in pair) for pair in memory]
        last = torch.tensor([row[-1] for row in rows])
        logits, caches = model.step(last, torch.full((count,), step), caches, repeated, lengths.expand(count))  # type: ignore[arg-type]
        totals = (scores[:, None] + logits.log_softmax(dim=-1)).flatten()
        best = totals.topk(size)
        parents, ids = best.indices // logits.shape[1], best.indices % logits.shape[1]
        grown = [[*rows[parent], id_] for parent, id_ in zip(parents.tolist(), ids.tolist(), strict=True)]
        over = (ids == EOS) | (step == limit - 1)
        ended += [(float(best.values[place]) / (step + 1), grown[place]) for place in over.nonzero()[:, 0].tolist()]
        going = (~over).nonzero()[:, 0]
        size = len(going)
        if not size:
            break
        rows, scores = [grown[place] for place in going.tolist()], best.values[going]
        caches = [tuple(part[parents[going]] for part in cache) for cache in caches]
    return [id_ for id_ in max(ended, key=lambda found: found[0])[1][1:] if id_ != EOS]


def occurring_together(trained: Trained, pairs: tuple[Sequence[str], Sequence[str]]) -> list[list[int]]:
    """Find the target pieces that stand beside each source piece most of all, by Dice's coefficient."""
    counts = np.zeros((len(trained.source), len(trained.target)))
    rows, columns = np.zeros((len(trained.source), 1)), np.zeros(len(trained.target))
    for source, target in zip(
        trained.source.encode(list(pairs[0])), trained.target.encode(list(pairs[1])), strict=True
    ):
        row, column = np.unique(source), np.unique(target)
        rows[row] += 1
        columns[column] += 1
        counts[np.ix_(row, column)] += 1
    scores = 2 * counts / np.maximum(rows + columns, 1)
    return [row.tolist() for row in np.argsort(-scores, axis=1)[:, :_TRANSLATIONS]]


class Firefox(NamedTuple):
    """A model as Firefox has it.

    Attributes:
        folder: of its files.
        weights: in fp32, of which its bytes are made.
        settings: what it says of itself.
        factors: see `input_factors`.
        shortlist: the content of the file.
    """

    folder: Path
    weights: dict[str, Any]
    settings: dict[str, Any]
    factors: dict[str, float]
    shortlist: bytes

    @property
    def model(self) -> Path:
        """The file of the weights."""
        return self.folder / "model.ende.intgemm.alphas.bin"

    def engine(self, *shortlist: bytes) -> fxtranslate.Translator:
        """Load it into Firefox's engine."""
        vocabularies = sorted(self.folder.glob("*vocab.*.spm"))
        contents = [file.read_bytes() for file in (vocabularies[0], vocabularies[-1])]
        return fxtranslate.Translator(self.model.read_bytes(), *contents, *shortlist)


def as_firefox(trained: Trained, pairs: tuple[Sequence[str], Sequence[str]]) -> Firefox:
    """Write the files of Firefox; the pairs say the scales of inputs and the translations of the shortlist."""
    weights = dict(np.load(trained.folder / "model.npz"))
    settings = yaml.safe_load(weights.pop(marian_bin.SETTINGS).tobytes().rstrip(b"\0"))
    examples = [trained.ids(text) for text in pairs[0][:_CALIBRATION]]
    factors = input_factors(Student(weights, settings), examples, 60)
    folder = trained.folder / "firefox"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in trained.folder.glob("*vocab.spm"):
        shutil.copy(file, folder / f"{file.stem}.ende.spm")
    shortlist = marian_bin.shortlist(occurring_together(trained, pairs))
    made = Firefox(folder, weights, settings, factors, shortlist)
    marian_bin.write(made.model, weights, settings, factors)
    return made


def compare_bytes(trained: Trained, texts: Sequence[str], made: Firefox, out: Path) -> dict[str, Equal]:
    """Compare Firefox's engine with Marian's arithmetic in NumPy, and with fp32."""
    import_folder(made.folder, out)
    model, _ = load_checkpoint(out)
    shortlist = Shortlist(made.shortlist, made.folder)
    pieces, joint = len(trained.target), model.config.share_embeddings
    sources = [trained.ids(text) for text in texts]

    def listed(source: list[int], limit: int) -> list[int]:
        return clipped.translate(source, limit, shortlist.candidates(source, pieces, joint=joint).tolist())

    def fp32(source: list[int], limit: int) -> list[int]:
        return greedy(model, [source], max_target_tokens=limit)[0]

    def equal(translate: Callable[[list[int], int], list[int]], wanted: Sequence[str]) -> Equal:
        found = [trained.text(translate(ids, 2 * len(ids) + 4)) for ids in tqdm(sources, leave=False, disable=None)]
        return Equal(sum(one == other for one, other in zip(found, wanted, strict=True)), len(wanted))

    clipped, unclipped = (Student(made.weights, made.settings, made.factors, how) for how in (saturating, exact))
    stored = MarianBin(made.model)
    floats = Student({name: stored.read(name) for name in made.weights}, made.settings)
    engine, listed_engine = made.engine(), made.engine(made.shortlist)
    expected = [engine.translate(text) for text in texts]
    return {
        "Firefox, sums clipped": equal(clipped.translate, expected),
        "Firefox with a shortlist, sums clipped": equal(listed, [listed_engine.translate(text) for text in texts]),
        "Firefox, sums exact": equal(unclipped.translate, expected),
        "Firefox, imported in fp32": equal(fp32, expected),
        "NumPy of the bytes in fp32, imported in fp32": equal(
            fp32, [trained.text(floats.translate(ids, 2 * len(ids) + 4)) for ids in sources]
        ),
    }


def main() -> None:
    """Train and compare all shapes, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="source<TAB>target lines to train on")
    parser.add_argument("--texts", type=Path, required=True, help="likewise, whose sources are translated")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="for the models")
    parser.add_argument("--updates", type=int, default=2500, help="of each training (default: 2500)")
    parser.add_argument("--pieces", type=int, default=2000, help="of each vocabulary (default: 2000)")
    parser.add_argument("--sentences", type=int, default=1000, help="to compare (default: 1000)")
    parser.add_argument("--only", choices=SHAPES, action="append", help="this shape alone")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    corpus, test = read_corpus(arguments.pairs), read_corpus(arguments.texts)
    texts = test.sources[: arguments.sentences]
    for name in arguments.only or SHAPES:
        shape = SHAPES[name]
        folder = arguments.out / name.replace(", ", "-").replace(" ", "-")
        pairs = corpus.sources, corpus.targets
        trained = train(shape, pairs, folder, arguments.updates, arguments.pieces)
        one, several = compare_fp32(trained, texts, folder / "checkpoint")
        found = {"Marian, greedy": one, f"Marian, beam of {BEAM}": several}
        if shape.recurrent:
            found |= compare_bytes(trained, texts, as_firefox(trained, pairs), folder / "imported")
        for what, equal in found.items():
            print(f"| {name} | {what} | {equal} |", flush=True)


if __name__ == "__main__":
    main()
