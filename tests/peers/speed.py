"""Times this project beside Firefox's engine on the same model and sentences, on one core, in turn: processor time.

    python -m tests.peers.speed --pairs train.tsv --texts test.tsv

It needs `fxtranslate` (the engine of Firefox) from PyPI. The model has the shape of its tiny ones: 6 + 2 layers of
width 256, a vocabulary of 32,000 pieces. Its random weights never end a sentence, so both decode as many pieces: twice
those of the source, and four. The engine of Firefox takes one sentence at a time.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from operator import truediv
from pathlib import Path
from typing import Final

import fxtranslate
import numpy as np

from dragoman.bundle import Bundle
from dragoman.language_marks import Languages
from dragoman.shortlist import Shortlist
from export.examples import Example
from export.parameters import open_checkpoint
from export.teacher import Teacher
from export.weights import WeightsFile
from export.write import Target, manifest_of, scale_and_calibrate, write_bundle
from model.corpus import read_corpus
from model.importing.run import import_folder
from plugins.offline.engine import OfflineEngine
from service.decode import Decode
from tests import marian_bin, marian_npz
from tests.hugging_face_files import train as train_pieces

_SHAPE: Final = {"dim-emb": 256, "transformer-dim-ffn": 1536, "transformer-heads": 8, "enc-depth": 6, "dec-depth": 2}
_PIECES: Final = 32_000
# Of a piece, in the shortlist: 29 pieces have as many candidates then as with the real one of en-de, some 940.
_TRANSLATIONS: Final = 30
_ROUNDS: Final = 7
_NEVER: Final = -1e4


def main(argv: Sequence[str]) -> int:
    """Time and print a table."""
    parser = argparse.ArgumentParser("python -m tests.peers.speed", description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=Path, required=True, help="source<TAB>target lines, to train the pieces on")
    parser.add_argument("--texts", type=Path, required=True, help="the same, of which the sources are translated")
    parser.add_argument("--sentences", type=int, default=200)
    arguments = parser.parse_args(argv)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    texts = read_corpus(arguments.texts).sources[: arguments.sentences]
    with tempfile.TemporaryDirectory() as folder:
        _measure(arguments.pairs, texts, Path(folder))
    return 0


def _measure(pairs: Path, texts: Sequence[str], folder: Path) -> None:
    corpus = read_corpus(pairs)
    lines = [*corpus.sources[:60_000], *corpus.targets[:60_000]]
    ids = {"eos_id": 0, "unk_id": 1, "bos_id": -1, "pad_id": -1}
    pieces = train_pieces(lines, vocab_size=_PIECES, byte_fallback=True, split_digits=True, **ids)
    given = folder / "given"
    given.mkdir()
    (given / "vocab.ende.spm").write_bytes(pieces)
    settings = marian_npz.SETTINGS | marian_npz.STUDENT | _SHAPE
    settings |= {"dim-vocabs": [_PIECES] * 2, "tied-embeddings-all": True, "tied-embeddings": False}
    weights = marian_npz.random_weights(settings, 0, separate=False, tied=True)
    del weights[marian_bin.SETTINGS]
    weights["decoder_ff_logit_out_b"][0, 0] = _NEVER
    factors = {name: 20.0 for name in weights if marian_bin.is_quantized(name)}
    file = given / "model.ende.intgemm.alphas.bin"
    marian_bin.write(file, weights, settings, factors)
    draw = np.random.default_rng(0)
    listed = marian_bin.shortlist(draw.choice(_PIECES, _TRANSLATIONS, replace=False).tolist() for _ in range(_PIECES))
    theirs = {
        "Firefox": fxtranslate.Translator(file.read_bytes(), pieces, pieces),
        "Firefox, shortlist": fxtranslate.Translator(file.read_bytes(), pieces, pieces, listed),
    }
    (given / "lex.50.50.ende.s2t.bin").write_bytes(listed)
    bundle = _bundle(given, folder, texts)
    tokenizer, eos = bundle.tokenizer(), bundle.manifest.eos_id
    sources = [[*tokenizer.encode(text), eos] for text in texts]
    shortlist = Shortlist(listed, given)
    candidates = [len(shortlist.candidates(ids, _PIECES, joint=True)) for ids in sources]

    def ours(engine: OfflineEngine, batch: int) -> None:
        for start in range(0, len(sources), batch):
            engine.decode([Decode(ids, 2 * len(ids) + 4) for ids in sources[start : start + batch]])

    def translate_all(engine: fxtranslate.Translator) -> None:
        for text in texts:
            engine.translate(text)

    runs: dict[str, Callable[[], None]] = {
        name: lambda engine=engine: translate_all(engine) for name, engine in theirs.items()
    }
    for slots, batch, name in ((1, 1, "one at a time"), (32, len(sources), "all at once")):
        for listed_too in (False, True):
            engine = OfflineEngine(bundle, threads=1, slots=slots, shortlist=listed_too)
            called = f"Dragoman, {name}{', shortlist' * listed_too}"
            runs[called] = lambda engine=engine, batch=batch: ours(engine, batch)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(_ROUNDS + 1):
        for name, run in runs.items():
            start_s = time.process_time()
            run()
            if round_:  # the first warms up
                times[name].append(time.process_time() - start_s)
    decoded = sum(2 * len(ids) + 4 for ids in sources)
    again = sum(len(tokenizer.encode_target(theirs["Firefox"].translate(text))) for text in texts)
    print(f"{len(texts)} sentences, {sum(map(len, sources))} source pieces, {decoded} target pieces; one core")
    print(f"{statistics.mean(candidates):.0f} candidates a sentence of {_PIECES:,} pieces")
    print(
        f"Firefox's engine multiplies by {theirs['Firefox'].backend()}; its texts have {again} pieces, tokenized again"
    )
    for name, spent in times.items():
        shares = [statistics.median(map(truediv, spent, times[other])) for other in theirs]
        told = ", ".join(f"{share:.2f} of {other}" for other, share in zip(theirs, shares, strict=True))
        print(f"{name:36} {1000 * statistics.median(spent) / len(texts):6.2f} ms a sentence; {told}")


def _bundle(given: Path, folder: Path, texts: Sequence[str]) -> Bundle:
    """Import the model; nobody compares it, since random weights agree with nothing."""
    import_folder(given, folder / "checkpoint")
    parameters, tokenizer = open_checkpoint(folder / "checkpoint")
    target = Target("tiny", Languages.pair("en", "de"), "int8", 128, 256)
    manifest = manifest_of(parameters, folder / "checkpoint", target)
    ids = [tokenizer.encode(text) for text in texts[:100]]
    examples = [Example([*one, manifest.eos_id], [manifest.start_id, *one]) for one in ids]
    (folder / "bundle").mkdir()
    with tempfile.TemporaryDirectory() as beside, WeightsFile(Path(beside)) as weights:
        ranges = scale_and_calibrate(parameters, Teacher(parameters, Path(beside), weights), examples)
    write_bundle(parameters, ranges, manifest, folder / "checkpoint", folder / "bundle")
    return Bundle.open(folder / "bundle")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
