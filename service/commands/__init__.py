"""The commands that need onnxruntime or a server: serve, translate, models, api-key."""
