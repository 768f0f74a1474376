"""onnxruntime: how a graph is opened, and the buffers in host memory that it runs on."""

import os

# From its import on, onnxruntime 1.31 sends telemetry to Microsoft, and keeps a database for it in the home folder.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
