"""The microservice: gRPC in, tokens through the engine, text out. Needs neither torch nor onnx."""
