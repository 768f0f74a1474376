"""Checkpoint to bundle: encoder and decoder ONNX graphs, quantization, parity check."""
