mkdir -p stubs
grpc_tools_ruby_protoc -I "$PROTO" --ruby_out=stubs --grpc_out=stubs dragoman/v1/translation.proto
