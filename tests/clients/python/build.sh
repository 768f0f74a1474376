mkdir -p stubs
.venv/bin/python -m grpc_tools.protoc -I "$PROTO" --python_out=stubs --grpc_python_out=stubs dragoman/v1/translation.proto
