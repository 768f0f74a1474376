"""The memory of the slots of a model, and the slots that a budget of memory allows; arithmetic on its manifest."""

from typing import Any, Final

import numpy as np

from dragoman.bundle import WEIGHTS, Bundle, Manifest
from dragoman.errors import BundleError
from service.runtime.slots import KEY_VALUE_TYPES, LOGITS_TYPES
from service.settings import MEGABYTE, Settings

# From this size on, memory bounds a step: more cores make a small batch faster, and a large one no slower.
_LARGE_BYTES: Final = 256 * MEGABYTE


def item_bytes(manifest: Manifest) -> int:
    """Count the bytes of one number of a key or value."""
    return np.dtype(KEY_VALUE_TYPES[manifest.precision]).itemsize


def slot_bytes(manifest: Manifest) -> int:
    """Count the bytes of one slot: its own keys and values, its encoder memory, and its decoder states."""
    tokens = manifest.cached_layers * manifest.target_capacity + manifest.decoder_layers * manifest.max_source_tokens
    states = 2 * manifest.state_layers * manifest.d_model * np.dtype(LOGITS_TYPES[manifest.precision]).itemsize
    return tokens * 2 * manifest.attention_width * item_bytes(manifest) + states


def slots_of(manifest: Manifest, settings: Settings) -> int:
    """Count the slots of each thread: the number in the settings, or fewer where the memory budget is too small.

    Raises:
        BundleError: the budget is too small for the slots of a request without options, which are one or more.
    """
    if not settings.kv_cache_mb:
        return settings.slots
    threads = settings.decoding_threads()
    affordable = settings.kv_cache_mb * MEGABYTE // (threads * slot_bytes(manifest))
    if affordable < settings.beam_size:
        needed_mb = -(-threads * settings.beam_size * slot_bytes(manifest) // MEGABYTE)
        count = "one slot" if settings.beam_size == 1 else f"{settings.beam_size} slots, the beam size,"
        raise BundleError(
            f"model {manifest.name}: keys and values take {needed_mb} MB with {count} on each of {threads} threads, "
            f"DRAGOMAN_KV_CACHE_MB (--kv-cache-mb) allows {settings.kv_cache_mb}"
        )
    return min(settings.slots, affordable)


def run_threads_of(bundle: Bundle, settings: Settings) -> int:
    """Count the cores that a run of a model uses."""
    if settings.run_threads or settings.processes > 1:
        return settings.run_threads or 1
    # The graphs of a bundle without the file hold their weights themselves.
    size_bytes = (bundle.path / WEIGHTS).stat().st_size if WEIGHTS in bundle.manifest.files else 0
    return settings.decoding_threads() if size_bytes >= _LARGE_BYTES else 1


def describe(manifest: Manifest, settings: Settings) -> dict[str, Any]:
    """Describe the memory that the slots of a model take, and how it is computed, for people.

    Raises:
        BundleError: as `slots_of`.
    """
    threads, slots = settings.decoding_threads(), slots_of(manifest, settings)
    layers, item = manifest.decoder_layers, item_bytes(manifest)
    width = f"{manifest.heads} * {manifest.head_dim}"
    computed = f"{layers} * 2 * {width} * ({manifest.target_capacity} + {manifest.max_source_tokens}) * {item}"
    if manifest.decoder_cell == "ssru":
        state_bytes = np.dtype(LOGITS_TYPES[manifest.precision]).itemsize
        states = f"2 * {layers} * {manifest.d_model} * {state_bytes}"
        computed = f"({layers} * 2 * {width} * {manifest.max_source_tokens} * {item} + {states})"
    return {
        "slots": slots,
        "bytes": threads * slots * slot_bytes(manifest),
        "computed": f"{threads} * {slots} * {computed}",
    }
