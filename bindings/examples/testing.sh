# Sourced by the run_tests.sh of the bindings: a library to test, counters, and the closing line. Nothing is written outside $work.
#
# PREFIX: where the library is installed; without it the library is built and installed into a temporary folder.

passed=0 failed=0 skipped=0
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PROOFINFER_SOURCE=$source_root
: "${PROOFINFER_MODELS:=$source_root/../shared/models}"
export PROOFINFER_MODELS
unset PROOFINFER_LIBRARY
# A Go that is older than go.mod asks for fetches the one that it names.
export GOTOOLCHAIN=auto
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build_library FOLDER CMAKE_ARGUMENT... : builds the library and the program and installs them into FOLDER.
build_library() {
  local prefix=$1
  shift
  cmake -S "$source_root" -B "$prefix.build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPROOFINFER_BUILD_TESTS=OFF "$@" >"$prefix.log" 2>&1 &&
    cmake --build "$prefix.build" >>"$prefix.log" 2>&1 &&
    cmake --install "$prefix.build" --prefix "$prefix" >>"$prefix.log" 2>&1 || { tail -n 40 "$prefix.log"; return 1; }
  rm -rf "$prefix.build"
}

# provide_library: $prefix is a copy that may be moved away, $libraries the folder with libproofinfer.so in it.
provide_library() {
  prefix=$work/prefix
  if [ -n "${PREFIX:-}" ]; then
    cp -a "$PREFIX" "$prefix"
  else
    build_library "$prefix" || exit 1
  fi
  use_library "$prefix"
}

use_library() {
  libraries=$(dirname "$(find "$1" -name libproofinfer.so | head -n 1)")
  PKG_CONFIG_PATH=$(dirname "$(find "$1" -name proofinfer.pc | head -n 1)")
  export PKG_CONFIG_PATH
  # Go's build cache does not look at what pkg-config says, but at this: without it an earlier run's folder would come out of the cache.
  export CGO_CPPFLAGS="-I$1/include"
}

# step NAME COMMAND... : one check that passes or fails as a whole; its output is shown when it fails.
step() {
  local name=$1
  shift
  echo "== $name"
  if ("$@") >"$work/step.log" 2>&1; then
    passed=$((passed + 1))
    grep -a 'SKIPPED\[' "$work/step.log"
  else
    failed=$((failed + 1))
    tail -n 60 "$work/step.log"
    echo "FAILED: $name"
  fi
  return 0
}

# skip WHY CAUSE
skip() {
  skipped=$((skipped + 1))
  echo "SKIPPED[$2]: $1"
}

# finish: the closing line, and the exit status.
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
  exit
}
