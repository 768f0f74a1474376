"""The default model in fp32, made once: the int8 bundle is in the repository."""

from pathlib import Path

from dragoman.bundle import Bundle, sha256
from export.parameters import open_checkpoint
from export.write import Target, manifest_of, write_bundle
from model.layout import WEIGHTS
from tests.made_once import made_once

CHECKPOINT = Path(__file__).parents[1] / "models" / "en-de" / "checkpoint"
BUNDLE = CHECKPOINT.parent / "bundle"


def target(precision: str) -> Target:
    """Give the name, the languages and the limits of the committed bundle, in a precision."""
    manifest = Bundle.open(BUNDLE).manifest
    return Target(manifest.name, manifest.languages, precision, manifest.max_source_tokens, manifest.max_target_tokens)


def fp32() -> Bundle:
    """Give the bundle of the committed checkpoint, which nobody has compared with it."""

    def make(folder: Path) -> None:
        parameters, _ = open_checkpoint(CHECKPOINT)
        manifest = manifest_of(parameters, CHECKPOINT, target("fp32"))
        (folder / "bundle").mkdir()
        write_bundle(parameters, {}, manifest, CHECKPOINT, folder / "bundle")

    return Bundle.open(made_once(f"default fp32 {sha256(CHECKPOINT / WEIGHTS)}", make) / "bundle")
