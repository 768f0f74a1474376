#!/bin/sh
# Checks a folder with the contract by buf: style, format, and whether it breaks clients of the one in this folder, which
# is what clients were last promised. At a release, proto/dragoman is copied here.
# buf comes from npm, into .cache/; where npm cannot get it, one line says so.
# usage: tests/contract/check.sh [FOLDER]
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-proto}
version=1.75.0
place=.cache/buf-$version
buf=$place/node_modules/.bin/buf
if [ ! -x "$buf" ]; then
    command -v npm >/dev/null || { echo 'proto-check skipped: there is no npm'; exit 0; }
    mkdir -p "$place"
    timeout 120 npm install --prefix "$place" --no-save --no-fund --no-audit --silent \
        --fetch-retries=1 --fetch-retry-mintimeout=1000 "@bufbuild/buf@$version" \
        >"$place/install.log" 2>&1 || { echo 'proto-check skipped: npm cannot install buf'; exit 0; }
fi
"$buf" lint "$folder"
"$buf" format --diff --exit-code "$folder"
"$buf" breaking "$folder" --against tests/contract
