#!/usr/bin/env bash
# The load tests of the example servers. PREFIX=FOLDER ./run_tests.sh; without PREFIX the library is built and installed into a temporary folder.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=testing.sh
. ./testing.sh

# lines NAME COMMAND... : each line of the command's output is one check.
lines() {
  local name=$1 status=0 before=$failed
  shift
  echo "== $name"
  timeout 900 "$@" >"$work/lines.log" 2>&1 || status=$?
  cat "$work/lines.log"
  passed=$((passed + $(grep -c '^ok ' "$work/lines.log")))
  failed=$((failed + $(grep -c '^FAILED ' "$work/lines.log")))
  if [ "$status" -ne 0 ] && [ "$failed" -eq "$before" ]; then failed=$((failed + 1)); fi
}

# server NAME FOLDER COMMAND... : the load test of a server, and the commands of its README.
server() {
  local name=$1 folder=$2
  shift 2
  lines "$name: load test" python3 -B load_test.py --program "$prefix/bin/proofinfer" \
    --tokenizer "$source_root/reference/demo/demo_tokenizer.bin" -- "$@"
  if [ -f "$PROOFINFER_MODELS/stories260K.bin" ]; then
    lines "$name: README" python3 -B readme_test.py "$folder/README.md" "$PROOFINFER_MODELS/stories260K.bin" "$PROOFINFER_MODELS/tok512.bin" -- "$@"
  else
    skip "no stories260K.bin in $PROOFINFER_MODELS" real-models
  fi
}

go_server() {
  (cd go-server && [ -z "$(gofmt -l .)" ] && go vet ./... && CGO_LDFLAGS="-Wl,-rpath,$libraries" go build -o "$work/go-server" .)
}

# The server as its users have it: the packed package installed beside a copy of it.
node_server() {
  (cd ../node && PROOFINFER_PREFIX=$prefix npm pack --silent --pack-destination "$work") && mkdir "$work/node-server" &&
    cp node-server/server.js node-server/package.json "$work/node-server/" && cd "$work/node-server" &&
    npm pkg set "dependencies.proofinfer=file:$(echo "$work"/proofinfer-*.tgz)" && npm install --silent --no-audit --no-fund
}

provide_library
step "Go server: build" go_server
server "Go server" go-server "$work/go-server"
step "Node server: install" node_server
server "Node server" node-server node "$work/node-server/server.js"
finish
