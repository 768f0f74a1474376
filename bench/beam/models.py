"""The default model on sentences that have a translation to compare with."""

from pathlib import Path

from bench.compare.models import Model, default_model
from bench.load.texts import read_pairs


def referenced(folder: Path, data: Path, precision: str, work: Path, at_most: int) -> tuple[Model, list[str]]:
    """Prepare the committed model on real sentences; see `default_model` for those that are left out.

    Returns:
        The model, and the reference translation of each of its sentences.

    Raises:
        BundleError: a bundle cannot be read or made.
        DataFileError: the file cannot be read.
    """
    references = dict(zip(*read_pairs(data), strict=True))
    model = default_model(folder, data, precision, work)
    model = model.take([place for place, text in enumerate(model.texts) if text in references]).pick(at_most)
    return model, [references[text] for text in model.texts]
