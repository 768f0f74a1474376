mkdir -p stubs classes
protoc -I "$PROTO" --java_out=stubs --grpc-java_out=stubs \
    --plugin=protoc-gen-grpc-java="$(command -v grpc_java_plugin)" dragoman/v1/translation.proto
protoc -I "$GOOGLEAPIS" --java_out=stubs google/rpc/status.proto google/rpc/error_details.proto
javac -d classes -cp "$CLASSPATH" Client.java $(find stubs -name '*.java')
