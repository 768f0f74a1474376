export GO111MODULE=off GOPATH="$PWD/gopath:/usr/share/gocode"
package=gopath/src/example.com/client
mkdir -p bin "$package"
cp client.go codec.go "$package"
go build -o bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
protoc -I "$PROTO" --plugin=bin/protoc-gen-go --plugin=bin/protoc-gen-go-grpc \
    --go_out="$package" --go_opt=paths=source_relative \
    --go-grpc_out="$package" --go-grpc_opt=paths=source_relative dragoman/v1/translation.proto
go build -tags gopath -o client example.com/client
