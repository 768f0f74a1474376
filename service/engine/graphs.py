"""The graphs of a bundle on a device, and a runner for each thread that drives them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from dragoman.bundle import Bundle
from dragoman.errors import BundleError
from service import cores, plugins
from service.engine.runner import Graph, Runner
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.interfaces import Decoder, Encoder


class Graphs(NamedTuple):
    """The opened graphs of a bundle, which all threads share."""

    encoder: Encoder
    decoder: Decoder


def open_graphs(
    bundle: Bundle,
    device: str,
    *,
    run_threads: int = 1,
    packed: bool = True,
    shortlist: bool = True,
) -> Graphs:
    """Load the graphs.

    Args:
        device: cpu or cuda.
        run_threads: as for `service.runtime.sessions.open_session`; on a CPU.
        packed: likewise.
        shortlist: choose only from the candidates of each segment, where the bundle has a shortlist; on a CPU.

    Raises:
        BundleError: a graph cannot be loaded on the device.
    """
    if device != "cpu":
        open_on_device: Callable[[Bundle, str], Graphs] | None = plugins.first(plugins.DEVICES)
        if open_on_device is None:
            raise BundleError(f"device {device}: needs a plugin of {plugins.DEVICES}")
        return open_on_device(bundle, device)
    with ThreadPoolExecutor(1) as beside:  # a large graph takes seconds, most of them without the interpreter's lock
        encoder = beside.submit(EncoderSession, bundle, run_threads=run_threads, packed=packed)
        decoder = DecoderSession(bundle, run_threads=run_threads, packed=packed, shortlist=shortlist)
        return Graphs(decoder=decoder, encoder=encoder.result())


def open_runners(
    bundle: Bundle,
    graphs: Graphs,
    *,
    device: str,
    threads: int,
    slots: int,
    on_failure: Callable[[Graph], None] = lambda graph: None,
) -> list[Runner]:
    """Reserve the slots of each thread.

    Args:
        threads: number of threads; 0: one per core, or one on a GPU.
        slots: number of slots of each thread.

    Raises:
        BundleError: there is no memory for the slots.
    """
    count = threads or (cores.available() if device == "cpu" else 1)
    manifest = bundle.manifest
    try:
        return [Runner(manifest, *graphs, slots, on_failure) for _ in range(count)]
    except MemoryError as error:
        raise BundleError(
            f"model {manifest.name}: no memory for {slots} slots on each of {count} threads, for sources of "
            f"{manifest.max_source_tokens} and translations of {manifest.max_target_tokens} tokens"
        ) from error
