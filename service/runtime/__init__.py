"""onnxruntime: how a graph is opened, and the buffers that it runs on, in host memory or a device's."""
