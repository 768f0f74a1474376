//go:build gopath

// Debian 12 has grpc-go 1.33 with a codec of golang/protobuf 1.3, which cannot read what its protoc-gen-go 1.28 makes.

package main

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"
)

type codec struct{}

func (codec) Name() string                                { return "proto" }
func (codec) Marshal(message interface{}) ([]byte, error) { return proto.Marshal(message.(proto.Message)) }
func (codec) Unmarshal(data []byte, message interface{}) error {
	return proto.Unmarshal(data, message.(proto.Message))
}

func init() { encoding.RegisterCodec(codec{}) }
