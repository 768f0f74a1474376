"""The models that are compared: for each its bundle, its checkpoint, its CTranslate2 model and its sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.exported import exported
from bench.load.texts import DataFileError, read_data_file, read_pairs
from bench.peers import random_model
from bench.peers.checkpoint import Checkpoint
from bench.peers.convert import convert
from bench.peers.ours import ended_by_model
from bench.sentences import Sentences, even_places
from dragoman.bundle import Bundle, target_limit
from dragoman.tokenizer import Tokenizer

# Of a model with random weights: tokens of each sentence, and of each translation.
TOKENS = 25
_BASE_SENTENCES = 512
_SEED = 1


@dataclass(frozen=True)
class Model:
    """The same weights in every form that is compared.

    Attributes:
        max_target_tokens: that requests ask for; None: the model's limit.
        references: human translations by text, where the data has them.
    """

    name: str
    bundle: Path
    checkpoint: Checkpoint
    ctranslate2: Path
    sentences: Sentences
    texts: list[str]
    max_target_tokens: int | None = None
    references: Mapping[str, str] = field(default_factory=dict)

    def take(self, places: Sequence[int]) -> "Model":
        """Return it with the sentences at these places only."""
        return replace(self, sentences=self.sentences.take(places), texts=[self.texts[place] for place in places])

    def pick(self, count: int) -> "Model":
        """Return it with at most `count` of the sentences, at even distances."""
        return self.take(even_places(len(self.sentences), count))


def real_sentences(bundle: Path, data: Path) -> tuple[Sentences, list[str]]:
    """Return the sentences of a file that the model ends by itself.

    A sentence may lead the model into a loop up to its limit, which the programs set in different ways. Such a sentence
    is left out, and so is one that is too long to be one segment.

    Args:
        data: source<TAB>target or text lines.

    Returns:
        The sentences and their texts.
    """
    manifest, texts = Bundle.open(bundle).manifest, read_data_file(data).texts
    sources = _sources(bundle, texts)
    fitting = [index for index, ids in enumerate(sources) if 1 < len(ids) <= manifest.max_source_tokens]
    sentences = Sentences(
        [sources[index] for index in fitting],
        [target_limit(len(sources[index]), manifest.max_target_tokens) for index in fitting],
    )
    ended = ended_by_model(bundle, sentences)
    return sentences.take(ended), [texts[fitting[place]] for place in ended]


def default_model(folder: Path, data: Path, precision: str, work: Path) -> Model:
    """Prepare the committed model on real sentences.

    Args:
        precision: of the bundle; other than int8, it is exported now.
    """
    checkpoint = Checkpoint.open(folder / "checkpoint")
    bundle = folder / "bundle" if precision == "int8" else exported(checkpoint.folder, precision, work / "default")
    sentences, texts = real_sentences(bundle, data)
    theirs = converted(checkpoint, work / "default")
    return Model("default", bundle, checkpoint, theirs, sentences, texts, references=_references(data))


def _references(data: Path) -> dict[str, str]:
    try:
        return dict(zip(*read_pairs(data), strict=True))
    except DataFileError:  # texts alone
        return {}


def base_model(precision: str, work: Path) -> Model:
    """Prepare 6+6 layers of random weights on sentences of a fixed length."""
    folder = work / "base"
    if not (folder / "checkpoint").exists():
        random_model.write_checkpoint(folder / "checkpoint", random_model.BASE, TOKENS, _SEED)
    return random_weights("base", folder, precision, _BASE_SENTENCES)


def random_weights(name: str, folder: Path, precision: str, count: int) -> Model:
    """Prepare a model of random weights, whose checkpoint is in a folder, on sentences of a fixed length."""
    checkpoint = Checkpoint.open(folder / "checkpoint")
    bundle = exported(checkpoint.folder, precision, folder)
    texts = random_model.sentences(checkpoint.config, TOKENS, count, _SEED)
    sources = _sources(bundle, texts)
    return Model(
        name, bundle, checkpoint, converted(checkpoint, folder), Sentences(sources, [TOKENS] * count), texts, TOKENS
    )


def _sources(bundle: Path, texts: Sequence[str]) -> list[list[int]]:
    tokenizer, eos_id = Tokenizer.open(bundle), Bundle.open(bundle).manifest.eos_id
    return [[*tokenizer.encode(text), eos_id] for text in texts]


def converted(checkpoint: Checkpoint, work: Path) -> Path:
    """Return the CTranslate2 model of a checkpoint, made if it is not in the folder."""
    out = work / "ctranslate2"
    return out if out.exists() else convert(checkpoint, out)
