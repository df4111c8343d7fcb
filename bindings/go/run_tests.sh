#!/usr/bin/env bash
# All checks of the Go binding. PREFIX=FOLDER ./run_tests.sh [asan]; see README.md.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=../examples/testing.sh
. ../examples/testing.sh

# go_tests NAME COMMAND... : a test run with -v; its tests are counted one by one, what failed and what was skipped is shown.
go_tests() {
  local name=$1 status=0 before=$failed
  shift
  echo "== $name"
  "$@" >"$work/tests.log" 2>&1 || status=$?
  passed=$((passed + $(grep -ac '^ *--- PASS' "$work/tests.log")))
  failed=$((failed + $(grep -ac '^ *--- FAIL' "$work/tests.log")))
  skipped=$((skipped + $(grep -ac '^ *--- SKIP' "$work/tests.log")))
  grep -aoE 'SKIPPED\[.*|(overhead|Generation\.|memory [0-9]+|.* rounds in ).*' "$work/tests.log"
  if [ "$status" -ne 0 ]; then
    [ "$failed" -gt "$before" ] || failed=$((failed + 1))
    grep -avE '^(=== | *--- (PASS|SKIP))' "$work/tests.log" | tail -n 80
  fi
}

formatted() {
  local files
  files=$(gofmt -l .)
  [ -z "$files" ] || { echo "gofmt would change: $files"; return 1; }
}

# readme_program FOLDER: the program of README.md as a module in FOLDER that uses the copy of the package beside it.
readme_program() {
  mkdir -p "$1"
  sed -n '/^```go$/,/^```$/{/^```/d;p}' README.md >"$1/main.go"
  (cd "$1" && go mod init example.test/story && go mod edit -require=proofinfer.example/proofinfer@v1.0.0 \
    -replace=proofinfer.example/proofinfer="$work/module")
}

# story PROGRAM: it tells the story that the C program tells.
story() {
  local demo=$source_root/reference/demo
  "$1" "$demo/demo.bin" "$demo/demo_tokenizer.bin" >"$work/story.txt" || return 1
  cat "$work/story.txt"
  diff <(head -c -1 "$work/expected.txt" | head -c 200) <(head -c 200 "$work/story.txt")
}

packaged_shared() {
  local app=$work/app
  mkdir -p "$app/lib" && cp -P "$libraries"/libproofinfer.so.* "$app/lib/" && (cd "$work/consumer" &&
    CGO_LDFLAGS='-Wl,-rpath,$ORIGIN/lib' go build -o "$app/story" .)
}

packaged_static() {
  (cd "$work/consumer" && go build -tags proofinfer_static -o "$work/app/story_static" .) &&
    (cd "$work/module" && go vet -tags proofinfer_static ./... && go test -c -tags proofinfer_static -o "$work/app/static.test" .) &&
    ! ldd "$work/app/story_static" | grep proofinfer
}

# without_library: what the build says where pkg-config knows no proofinfer. A cache of its own, so that it must ask.
without_library() {
  (cd "$work/consumer" && ! GOCACHE=$work/cache PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH= go build -o "$work/none" . 2>"$work/none.log")
  cat "$work/none.log"
  grep -q "Package proofinfer was not found in the pkg-config search path" "$work/none.log" && grep -q PKG_CONFIG_PATH "$work/none.log"
}

# refuses WORD... : the program ends badly with the library that LD_LIBRARY_PATH names, and says each word.
refuses() {
  local demo=$source_root/reference/demo word
  if "$work/app/story" "$demo/demo.bin" "$demo/demo_tokenizer.bin" >"$work/refused.txt" 2>&1; then return 1; fi
  cat "$work/refused.txt"
  for word; do grep -qF -- "$word" "$work/refused.txt" || return 1; done
}

# A library that says of itself that it is version 2.3.4, found before the program's own; the loader takes it for the right one.
another_version() {
  mkdir "$work/newer" && echo 'int proofinfer_version_number(void) { return 2003004; }' >"$work/newer/newer.c" &&
    echo 'PROOFINFER_1 { global: proofinfer_*; };' >"$work/newer/newer.map" &&
    cc -shared -fPIC -Wl,-soname,libproofinfer.so.1 -Wl,--version-script="$work/newer/newer.map" -o "$work/newer/libproofinfer.so.1" \
      "$work/newer/newer.c" &&
    LD_LIBRARY_PATH=$work/newer refuses "version mismatch" "version 2.3.4" "version $version"
}

no_library() {
  mv "$work/app/lib" "$work/app/lib.away" && refuses "error while loading shared libraries: libproofinfer.so.1"
}

if [ "${1:-}" = asan ]; then
  # The library and the C parts of the package under AddressSanitizer; leaks are looked for when the tests end.
  flags="-fsanitize=address -fno-omit-frame-pointer"
  build_library "$work/asan" -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_CXX_FLAGS="$flags" -DPROOFINFER_BUILD_PROGRAM=OFF || exit 1
  use_library "$work/asan"
  CC=gcc LD_LIBRARY_PATH=$libraries go_tests "tests under AddressSanitizer" go test -asan -count=1 -v -skip '/stories15M_shape' .
  finish
fi

provide_library
step "gofmt" formatted
step "go vet" go vet ./...
export LD_LIBRARY_PATH=$libraries
go_tests "tests" go test -count=1 -v ./...
go_tests "tests under the race detector" go test -race -short -count=1 -v ./...

version=$(pkg-config --modversion proofinfer)
mkdir "$work/module" && cp -r ./*.go go.mod internal "$work/module"
"$prefix/bin/proofinfer" generate "$source_root/reference/demo/demo.bin" -q -i "Once upon a time" -t 0.8 -s 42 -n 110 >"$work/expected.txt"
step "README program" readme_program "$work/consumer"
step "packaged: shared" packaged_shared
step "packaged: static" packaged_static
mv "$prefix" "$prefix.away"
unset LD_LIBRARY_PATH PKG_CONFIG_PATH
step "packaged: shared, library moved away" story "$work/app/story"
step "packaged: static, library moved away" story "$work/app/story_static"
step "another major version is refused" another_version
step "no library at run time" no_library
step "no library at build time" without_library
cd "$work/app" || exit 1
go_tests "packaged: all tests, linked statically, libraries moved away" ./static.test -test.v -test.short
finish
