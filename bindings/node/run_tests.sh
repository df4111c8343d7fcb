#!/usr/bin/env bash
# All checks of the Node binding. PREFIX=FOLDER ./run_tests.sh; see README.md.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=../examples/testing.sh
. ../examples/testing.sh

# node_tests NAME : all tests of the current folder's test/, counted one by one.
node_tests() {
  local status=0 before=$failed
  echo "== $1"
  # One file after the other: some of them measure times and memory.
  node --test --test-concurrency=1 --test-reporter=tap test/ >"$work/tests.log" 2>&1 || status=$?
  local count
  for count in pass fail cancelled skipped; do
    local number
    number=$(sed -nE "s/^# $count ([0-9]+)$/\1/p" "$work/tests.log")
    case $count in
      pass) passed=$((passed + ${number:-0})) ;;
      skipped) skipped=$((skipped + ${number:-0})) ;;
      *) failed=$((failed + ${number:-0})) ;;
    esac
  done
  grep -aoE 'SKIPPED\[.*' "$work/tests.log"
  grep -aE 'ticks of|after the abort|after exit|beside 8|rounds, memory' "$work/tests.log"
  if [ "$status" -ne 0 ]; then
    [ "$failed" -gt "$before" ] || failed=$((failed + 1))
    grep -avE '^ *(ok |---$|\.\.\.$|duration_ms|# Subtest)' "$work/tests.log" | tail -n 80
  fi
}

# No address of a package registry may stand in a file that is committed.
lock_is_clean() {
  ! grep -n '"resolved"' package-lock.json
}

bench() {
  node bench/overhead.js 300 | tee "$work/bench.txt"
  return "${PIPESTATUS[0]}"
}

pack() {
  PROOFINFER_PREFIX=$prefix npm pack --silent --pack-destination "$work" && tar -tzf "$work"/proofinfer-*.tgz
}

install_packed() {
  mkdir "$work/empty" && cd "$work/empty" && echo '{ "private": true, "type": "module" }' >package.json &&
    npm install --silent --no-audit --no-fund "$work"/proofinfer-*.tgz && ls node_modules
}

uses_packaged_library() {
  node --input-type=module -e 'import { loadLibrary } from "proofinfer"; console.log(loadLibrary());' | tee /dev/stderr |
    grep -q "^$work/empty/node_modules/proofinfer/native/"
}

provide_library
export PROOFINFER_LIBRARY=$libraries/libproofinfer.so
step "lock file" lock_is_clean
step "npm ci" npm ci --silent --no-audit --no-fund
step "declarations" npx --no-install tsc --project test/types
# The packed package gets the whole stress test.
PROOFINFER_STRESS_SECONDS=3 node_tests "tests"
step "overhead" bench
cat "$work/bench.txt"

unset PROOFINFER_LIBRARY
step "npm pack" pack
step "npm install into an empty folder" install_packed
mv "$prefix" "$prefix.away"
if [ -d "$work/empty" ]; then
  cp -r test "$work/empty/"
  cd "$work/empty" || exit 1
  step "packaged: its own library is loaded" uses_packaged_library
  node_tests "packaged: all tests, library moved away"
fi
finish
