"""The interface of a model family: the steps that turn one of its models into a checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman.language_marks import Languages
from model.arrays import Array
from model.config import TransformerConfig
from model.importing.source import Source
from model.safetensors_file import Weights


@dataclass(frozen=True)
class Wanted:
    """The languages given by the user, as BCP-47 codes or the model's codes; if empty, the folder decides.

    Attributes:
        sources: the source languages.
        targets: the target languages.
        languages: restricts the model's languages to these.
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


ANY_LANGUAGES: Final = Wanted()


@dataclass(frozen=True)
class Texts:
    """The tokenizer, and the marks of the languages.

    Attributes:
        tokenizer: the content of the tokenizer's files, by name, see `dragoman/tokenizer.py`.
        unknown_id: the id of pieces outside the vocabularies.
        languages: the languages of the model.
        warnings: the warnings, one line each.
        shortlist: see `dragoman/shortlist.py`; None: the model has none.
    """

    tokenizer: Mapping[str, bytes]
    unknown_id: int
    languages: Languages
    warnings: Sequence[str] = ()
    shortlist: bytes | None = None


# One weight of the checkpoint: source tensors, joined by rows, or a computed array.
Recipe = Sequence[str] | Array


@dataclass(frozen=True)
class Network:
    """The configuration and the weights of the model.

    Attributes:
        config: the configuration of the checkpoint.
        weights: the recipe of each weight of `model.transformer.Transformer`, by its name.
        ignored: source tensors that are not needed.
        warnings: the warnings, one line each.
    """

    config: TransformerConfig
    weights: Mapping[str, Recipe]
    ignored: frozenset[str] = frozenset()
    warnings: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Family:
    """A family. Its steps run in this order, so that a model is refused before any weight is read.

    Attributes:
        name: the name for messages.
        check: refuses unsupported settings of a folder; returns warnings.
        texts: reads the tokenizer and the languages.
        network: maps the weights; gets the id of unknown pieces. All three steps raise DataError.
    """

    name: str
    check: Callable[[Source], Sequence[str]]
    texts: Callable[[Source, Wanted], Texts]
    network: Callable[[Source, Weights, int], Network]
