"""What a family of models has to say of one of its own, step by step, so that it becomes a checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman.language_marks import Languages
from model.config import TransformerConfig
from model.importing.arrays import Array
from model.importing.source import Source
from model.importing.weights import Weights


@dataclass(frozen=True)
class Wanted:
    """What the user says of the languages, as BCP-47 codes or codes of the model; where empty, the folder decides.

    Attributes:
        sources: languages that it translates from.
        targets: languages that it translates into.
        languages: of those of the model, only these.
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


ANY_LANGUAGES: Final = Wanted()


@dataclass(frozen=True)
class Texts:
    """How text becomes ids, and what the languages need.

    Attributes:
        tokenizer: the content of the tokenizer's files, by name, see `dragoman/tokenizer.py`.
        unknown_id: of pieces that are in no vocabulary.
        languages: of the model.
        warnings: a line each.
        shortlist: see `dragoman/shortlist.py`; None where the model has none.
    """

    tokenizer: Mapping[str, bytes]
    unknown_id: int
    languages: Languages
    warnings: Sequence[str] = ()
    shortlist: bytes | None = None


# One weight of the checkpoint: tensors of the source, one below the other, or an array that was computed.
Recipe = Sequence[str] | Array


@dataclass(frozen=True)
class Network:
    """The model itself.

    Attributes:
        config: of the checkpoint.
        weights: what each weight of `model.transformer.Transformer` is made of, by its name.
        ignored: tensors of the source that are not needed.
        warnings: a line each.
    """

    config: TransformerConfig
    weights: Mapping[str, Recipe]
    ignored: frozenset[str] = frozenset()
    warnings: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Family:
    """One family. Its steps run in this order, so that all refusals come before a weight is read.

    Attributes:
        name: for people.
        check: refuse what the settings of a folder ask for and cannot be had; returns warnings.
        texts: read the tokenizer and the languages.
        network: map the weights; given the id of unknown pieces. All three raise DataError.
    """

    name: str
    check: Callable[[Source], Sequence[str]]
    texts: Callable[[Source, Wanted], Texts]
    network: Callable[[Source, Weights, int], Network]
