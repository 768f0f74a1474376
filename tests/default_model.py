"""The default model in fp32, made once: the int8 bundle is in the repository."""

from pathlib import Path

from dragoman.bundle import Bundle, sha256
from export.write import Target, manifest_of, write_bundle
from model.checkpoint import load_checkpoint
from model.layout import WEIGHTS
from tests.exporting import quick_and_quiet
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
        model, _ = load_checkpoint(CHECKPOINT)
        manifest = manifest_of(model, CHECKPOINT, target("fp32"))
        (folder / "bundle").mkdir()
        with quick_and_quiet():
            write_bundle(model, [], manifest, CHECKPOINT, folder / "bundle")

    return Bundle.open(made_once(f"default fp32 {sha256(CHECKPOINT / WEIGHTS)}", make) / "bundle")
