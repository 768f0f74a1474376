"""The memory of a model: estimated from its manifest and its files, corrected by the memory that loading it took."""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from dragoman.bundle import Bundle
from dragoman.errors import BundleError
from service.registry.capacity import item_bytes, slot_bytes, slots_of
from service.runtime.host import RUN_SIZE
from service.runtime.slots import LOGITS_TYPES
from service.settings import MEGABYTE, Settings

# Measured, see docs/operating.md: for any model, with its tokenizer and threads; ...
_BASE_BYTES: Final = 4 * MEGABYTE
# ... for each byte of its files: onnxruntime brings the weights of products into an order of its own; ...
_BYTES_OF_FILE: Final = 1.75
# ... and vectors of the model's width for each token of an encoder run, on each thread.
_WIDTHS_OF_TOKEN: Final = 16
_FLOAT_BYTES: Final = 4
# Candidates of a segment, in a model with a shortlist; 19 of 20 sentences have fewer.
_CANDIDATES: Final = 1_400
_STATUS: Final = Path("/proc/self/status")
_ANONYMOUS: Final = "RssAnon:"
_KIB: Final = 1024

FORMULA: Final = (
    "4 MB + 1.75 * files + threads * (64 * d_model * max(512, max_source_tokens) + slots * (keys and values + logits + "
    "attention + candidates)) + encoder_cache_mb + result_cache_mb"
)


class Cost(NamedTuple):
    """The memory of a model.

    Attributes:
        loaded_bytes: memory that the load takes.
        later_bytes: memory that slots, caches and runs of the encoder take later.
    """

    loaded_bytes: int
    later_bytes: int

    @property
    def total_bytes(self) -> int:
        """The most memory that the model takes."""
        return self.loaded_bytes + self.later_bytes

    def corrected(self, grown_bytes: int) -> "Cost":
        """Replace `loaded_bytes` by the growth of the process during the load, where the growth is more.

        A smaller growth says nothing: memory that the process had freed before is reused without growth.
        """
        return self._replace(loaded_bytes=max(self.loaded_bytes, grown_bytes))


def estimate(bundle: Bundle, settings: Settings) -> Cost:
    """Estimate the memory of a model before it is loaded.

    Args:
        bundle: its hashes need not be checked yet.

    Raises:
        BundleError: a file is missing, or the settings leave no room for its slots.
    """
    manifest = bundle.manifest
    number_bytes = np.dtype(LOGITS_TYPES[manifest.precision]).itemsize
    numbers = manifest.vocabulary_size + manifest.heads * manifest.max_source_tokens  # of logits, and of attention
    run_tokens = max(RUN_SIZE.tokens, manifest.max_source_tokens)
    of_thread = _WIDTHS_OF_TOKEN * _FLOAT_BYTES * manifest.d_model * run_tokens
    of_slot = slot_bytes(manifest) + numbers * number_bytes
    if bundle.has_shortlist and settings.shortlists:
        of_slot += _CANDIDATES * manifest.d_model * item_bytes(manifest)
    of_thread += slots_of(manifest, settings) * of_slot
    caches = (settings.encoder_cache_mb + settings.result_cache_mb) * MEGABYTE
    files = sum(_size_bytes(bundle.path / name) for name in manifest.files)
    return Cost(
        _BASE_BYTES + int(_BYTES_OF_FILE * files),
        settings.decoding_threads() * of_thread + caches,
    )


def anonymous_bytes() -> int:
    """Measure the resident memory of this process that maps no file; 0 where the system does not tell it."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:  # not Linux
        return 0
    return sum(int(line.split()[1]) * _KIB for line in lines if line.startswith(_ANONYMOUS))


def _size_bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise BundleError(f"{file}: cannot read: {error.strerror}") from error
