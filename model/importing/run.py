"""A complete import; every refusal comes before any weight is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dragoman.language_marks import Languages
from model.config import TransformerConfig
from model.importing.checkpoint import write_checkpoint
from model.importing.families import family_of
from model.importing.family import ANY_LANGUAGES, Wanted
from model.importing.source import Source
from model.importing.weights import open_weights

Report = Callable[[str], None]


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    Attributes:
        family: the name of the family.
        config: the configuration of the model.
        parameters: the number of parameters.
        languages: the languages of the model.
        warnings: the warnings, one line each.
    """

    family: str
    config: TransformerConfig
    parameters: int
    languages: Languages
    warnings: tuple[str, ...]


def import_folder(
    folder: Path,
    out: Path,
    wanted: Wanted = ANY_LANGUAGES,
    report: Report = lambda message: None,
    name: str = "",
    origin: Mapping[str, str] = MappingProxyType({}),
) -> Imported:
    """Write a checkpoint from the folder of a model.

    Args:
        folder: the folder of the model.
        out: the folder of the checkpoint; an older checkpoint is replaced.
        wanted: the languages given by the user.
        report: gets a message before each step.
        name: the name of the model, which may contain its languages; "": the name of the folder.
        origin: the known origin of the model, for the record.

    Raises:
        DataError: the model cannot be imported; the message says why.
    """
    source = Source.open(folder, name)
    family = family_of(source)
    warnings = list(family.check(source))
    texts = family.texts(source, wanted)
    files = source.weight_files()
    report(f"reading the weights of a {family.name} model: {', '.join(file.name for file in files)}")
    weights = open_weights(files)
    network = family.network(source, weights, texts.unknown_id)
    warnings += [*texts.warnings, *network.warnings]
    report("writing the checkpoint")
    record = {"family": source.config["model_type"], "source": dict(source.hashes()), "warnings": warnings}
    record |= origin
    parameters = write_checkpoint(out, network, weights, texts, record)
    return Imported(family.name, network.config, parameters, texts.languages, tuple(warnings))
