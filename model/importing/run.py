"""An import from beginning to end: all that can be refused is refused before a weight is read."""

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
    """What was imported.

    Attributes:
        family: its name.
        config: of the model.
        parameters: how many numbers it has.
        languages: of the model.
        warnings: a line each.
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
    """Write a checkpoint of a model in the format of Hugging Face.

    Args:
        folder: of the model.
        out: folder of the checkpoint; an older one is replaced.
        wanted: what the user says of the languages.
        report: told of each step before it begins.
        name: of the model, which may say its languages; that of the folder if empty.
        origin: what is known of where it comes from, for the record.

    Raises:
        DataError: the model cannot be imported; says why.
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
