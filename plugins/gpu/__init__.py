"""Models in a GPU's memory: of a step, only the next ids come to the host."""

from dragoman.bundle import Bundle
from plugins.gpu.device import DeviceDecoder, DeviceEncoder
from service.engine.graphs import Graphs


def open_graphs(bundle: Bundle, device: str) -> Graphs:
    """Load the graphs, with all buffers in a device's memory.

    Args:
        device: cuda; or cpu, where all of it runs too, only slower.

    Raises:
        BundleError: a graph cannot be loaded on the device.
    """
    return Graphs(DeviceEncoder(bundle, device), DeviceDecoder(bundle, device))
