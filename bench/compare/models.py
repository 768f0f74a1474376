"""The models that are compared: for each its bundle, its checkpoint, its CTranslate2 model and its sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.exported import exported
from bench.load.texts import read_data_file
from bench.peers.checkpoint import Checkpoint
from bench.peers.convert import converted
from bench.peers.ours import ended_by_model
from bench.peers.random_model import SEED, TOKENS, drawn_checkpoint, sentences
from bench.sentences import Sentences, encoded, even_places
from dragoman.bundle import Bundle, target_limit
from dragoman.errors import DataError
from model.corpus import read_corpus


@dataclass(frozen=True)
class Model:
    """The same weights in every form that is compared."""

    bundle: Path
    checkpoint: Checkpoint
    ctranslate2: Path
    sentences: Sentences
    texts: list[str]
    references: Mapping[str, str] = field(default_factory=dict)  # human translations by text, where the data has them

    def pick(self, count: int) -> "Model":
        """Return it with at most `count` of the sentences, at even distances."""
        places = even_places(len(self.sentences), count)
        return replace(self, sentences=self.sentences.take(places), texts=[self.texts[place] for place in places])


def real_sentences(bundle: Path, data: Path) -> tuple[Sentences, list[str]]:
    """Return the sentences of a file that the model ends by itself, and their texts.

    A sentence may lead the model into a loop up to its limit, which the programs set in different ways. Such a sentence
    is left out, and so is one that is too long to be one segment.
    """
    manifest, texts = Bundle.open(bundle).manifest, read_data_file(data).texts
    sources = encoded(bundle, texts)
    fitting = [index for index, ids in enumerate(sources) if 1 < len(ids) <= manifest.max_source_tokens]
    found = Sentences(
        [sources[index] for index in fitting],
        [target_limit(len(sources[index]), manifest.max_target_tokens) for index in fitting],
    )
    ended = ended_by_model(bundle, found)
    return found.take(ended), [texts[fitting[place]] for place in ended]


def default_model(folder: Path, data: Path, precision: str, work: Path) -> Model:
    """Prepare the committed model on real sentences; a bundle of another precision than int8 is exported now."""
    checkpoint = Checkpoint.open(folder / "checkpoint")
    bundle = folder / "bundle" if precision == "int8" else exported(checkpoint.folder, precision, work)
    real, texts = real_sentences(bundle, data)
    try:
        corpus = read_corpus(data)
        references = dict(zip(corpus.sources, corpus.targets, strict=True))
    except DataError:  # texts alone
        references = {}
    return Model(bundle, checkpoint, converted(checkpoint, work), real, texts, references)


def random_model(shape: str, precision: str, work: Path, count: int) -> Model:
    """Prepare a model of random weights on sentences of a fixed length."""
    checkpoint = Checkpoint.open(drawn_checkpoint(shape, work))
    bundle = exported(checkpoint.folder, precision, work)
    texts = sentences(checkpoint.config, TOKENS, count, SEED)
    fixed = Sentences(encoded(bundle, texts), [TOKENS] * count)
    return Model(bundle, checkpoint, converted(checkpoint, work), fixed, texts)
