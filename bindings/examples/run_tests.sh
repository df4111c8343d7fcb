#!/usr/bin/env bash
# The load tests of the example servers. PREFIX=FOLDER ./run_tests.sh; without PREFIX the library is built and installed into a temporary folder.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=testing.sh
. ./testing.sh

# load_test NAME COMMAND... : each of its lines is one check.
load_test() {
  local name=$1 status=0 before=$failed
  shift
  echo "== $name"
  timeout 900 python3 -B load_test.py --program "$prefix/bin/proofinfer" --tokenizer "$source_root/reference/demo/demo_tokenizer.bin" -- "$@" \
    >"$work/load.log" 2>&1 || status=$?
  cat "$work/load.log"
  passed=$((passed + $(grep -c '^ok ' "$work/load.log")))
  failed=$((failed + $(grep -c '^FAILED ' "$work/load.log")))
  if [ "$status" -ne 0 ] && [ "$failed" -eq "$before" ]; then failed=$((failed + 1)); fi
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
load_test "Go server: load test" "$work/go-server"
step "Node server: install" node_server
load_test "Node server: load test" node "$work/node-server/server.js"
finish
