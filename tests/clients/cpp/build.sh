mkdir -p stubs
protoc -I "$PROTO" --cpp_out=stubs --grpc_out=stubs --plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" \
    dragoman/v1/translation.proto
protoc -I "$GOOGLEAPIS" --cpp_out=stubs google/rpc/status.proto google/rpc/error_details.proto
find client.cc stubs -name '*.cc' | xargs -P 4 -I FILE g++ -std=c++17 -I stubs -c FILE -o FILE.o
find . -name '*.o' | xargs sh -c 'g++ -o client "$@" $(pkg-config --libs grpc++ protobuf)' link
