#!/bin/sh
# Generates the stubs of dragoman.v1 below OUT (default: the repository) with the grpcio-tools of the `dev` extra.
# The include path is the folder `proto`, so that the file registers as dragoman/v1/translation.proto: under any
# other name, a process that also holds a user's own stubs of it would die of duplicate symbols.
# usage: [PYTHON=python3] proto/generate.sh [OUT]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root}
cd "$root"
exec "${PYTHON:-python3}" -m grpc_tools.protoc -Iproto \
    --python_out="$out" --pyi_out="$out" --grpc_python_out="$out" \
    dragoman/v1/translation.proto
