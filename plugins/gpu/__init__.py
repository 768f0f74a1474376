"""Models in a GPU's memory: after a step, only the next ids are copied to the host."""

from dragoman.bundle import Bundle
from plugins.gpu.device import DeviceDecoder, DeviceEncoder
from service.engine.graphs import Graphs


def open_graphs(bundle: Bundle, device: str) -> Graphs:
    """Load the graphs, with all buffers in the memory of a device.

    Args:
        device: cuda; or cpu, where everything works too, but slower.

    Raises:
        BundleError: a graph cannot be loaded on the device.
    """
    return Graphs(DeviceEncoder(bundle, device), DeviceDecoder(bundle, device))
