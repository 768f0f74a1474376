#!/bin/sh
# Generates the stubs of dragoman.v1, and of the part of Google's API that the server answers, below OUT (default: the
# repository).
# The include path is the folder `proto`, so that the file registers as dragoman/v1/translation.proto: under any
# other name, a process that also holds a user's own stubs of it would die of duplicate symbols.
# The generator is an old one on purpose: its stubs run with protobuf 5 to 7. Those of later ones refuse each older
# version, and so would the client. It is kept in .cache, apart from the environment, which has a later one.
# usage: [PYTHON=python3.11] proto/generate.sh [OUT]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root}
python=${PYTHON:-python3}
generator=grpcio-tools==1.64.3 # for Python 3.11 and 3.12
tools=$root/.cache/$generator
cd "$root"
if [ ! -d "$tools" ]; then
    rm -rf "$tools.partial"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --target "$tools.partial" "$generator"
    mv "$tools.partial" "$tools"
fi
export PYTHONPATH=$tools
"$python" -m grpc_tools.protoc -Iproto \
    --python_out="$out" --pyi_out="$out" --grpc_python_out="$out" \
    dragoman/v1/translation.proto
# Under a path of the server's own, as the vendor has a file of the same name; without stubs of the service, which only
# clients need.
"$python" -m grpc_tools.protoc -Iplugins/google/v3=proto/google/cloud/translation/v3 \
    --python_out="$out" --pyi_out="$out" \
    plugins/google/v3/translation_service.proto
