#!/usr/bin/env bash
# The long tier: checks that take longer than a commit may wait. long.sh [stage...]; without a stage, all of them. Prints seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/tools/stages.sh

build=build/long

build_release() {
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPROOFINFER_BUILD_TESTS=ON
  cmake --build "$build"
}

# Every test under Valgrind's memcheck, the programs with their internals included.
valgrind_units() {
  local program
  for program in "$build"/tests/unit/unit_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    case "$program" in *allocations) continue ;; esac  # replaces the allocator that memcheck watches
    valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$program" --gtest_brief=1
  done
}

# All tests with clang -O0, and the recorded figures on all numbers of threads as other compilers and optimisation levels build them.
compilers() {
  local clang="-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++" lto=-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON name options
  while read -r name options; do
    # shellcheck disable=SC2086
    cmake -S . -B "$build-$name" -G Ninja -DPROOFINFER_BUILD_TESTS=ON $options
    cmake --build "$build-$name"
    case $name in
    clang-o0) python3 -B tests/tools/run_tests.py --build-dir "$build-$name" -j "$(nproc)" -E '^(install|valgrind)\.' ;;
    *) python3 -B tests/tools/run_tests.py --build-dir "$build-$name" -j "$(nproc)" -R '^conformance\.' ;;
    esac
  done <<END
gcc-o0 -DCMAKE_BUILD_TYPE=Debug
gcc-o2 -DCMAKE_BUILD_TYPE=RelWithDebInfo
gcc-lto -DCMAKE_BUILD_TYPE=Release $lto
clang-o0 -DCMAKE_BUILD_TYPE=Debug $clang
clang-o2 -DCMAKE_BUILD_TYPE=RelWithDebInfo $clang
clang-lto -DCMAKE_BUILD_TYPE=Release $lto $clang -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld
END
}

# What CTest keeps for this tier: comparisons over every input.
exhaustive() {
  python3 -B tests/tools/run_tests.py --build-dir "$build" -C Long -R '^long\.'
}

# Every goal of the proved files without the hints that CI has, with what ties them to the libraries; then every mutant of them.
proof() {
  tests/tools/install_dependencies.sh proof
  tests/proof/prove.py --build "$build" --no-hints
  tests/proof/mutate.py
}

# The recorded figures, all of them, on other architectures and on old CPUs.
other_machines() { NATIVE_BUILD=$build tests/tools/other_machines.sh all; }

# The stress tests of the bindings, a minute each instead of ten seconds: Python's under Valgrind too, Go's with AddressSanitizer too.
bindings() {
  cmake --install "$build" --prefix "$build/prefix"
  local PREFIX=$PWD/$build/prefix PROOFINFER_LONG=1
  export PREFIX PROOFINFER_LONG
  python3 -B bindings/python/tests/run.py --long --only stress,valgrind
  bindings/go/run_tests.sh
  bindings/go/run_tests.sh asan
  bindings/node/run_tests.sh
}

# The concurrency tests again and again under ThreadSanitizer.
tsan_repeated() {
  cmake --preset tsan
  cmake --build --preset tsan
  ctest --preset tsan --repeat until-fail:20
}

# Every fuzz target for FUZZ_SECONDS each (20 minutes), two at a time.
fuzzing() {
  cmake --preset fuzz
  cmake --build --preset fuzz --target proofinfer_fuzzers
  python3 -B fuzz/run.py --build-dir build/fuzz --seconds "${FUZZ_SECONDS:-1200}"
}

# The engine against every oracle that can be installed, and on SmolLM2 against llama.cpp; LLAMA2C names a folder of llama2.c with model.py, run and runq.
oracles() {
  tests/tools/install_dependencies.sh ci
  reference/install.sh all
  local names=transformers,llama.cpp more=()
  if [ -n "${LLAMA2C:-}" ]; then names+=,model.py,run,runq more=(--llama2c "$LLAMA2C"); fi
  build/oracles/bin/python -B reference/diff_test.py --library "$build/src/libproofinfer.so.1" --oracles $names \
    --node-folder build/oracles/node "${more[@]}"
  build/oracles/bin/python -B reference/smollm2_test.py --library "$build/src/libproofinfer.so.1" --model "$(tests/tools/smollm2.sh)" \
    --node-folder build/oracles/node
}

# Every mistake planted in the engine, to be noticed by the oracles.
engine_mutants() {
  reference/install.sh
  build/oracles/bin/python -B reference/engine_mutants.py
}

# Mutants of all sources, to be noticed by the quick tests. MUTANTS of them are drawn, from SEED.
source_mutants() {
  reference/install.sh
  build/oracles/bin/python -B tests/mutation/mutate_sources.py --count "${MUTANTS:-340}" --seed "${SEED:-1}" --jobs "$(nproc)"
  tests/tools/other_machines.sh install aarch64
  build/oracles/bin/python -B tests/mutation/mutate_sources.py --machine aarch64 --files kernels_neon --tests 'kernels|isas' --jobs "$(nproc)"
}

# Gates are seen red.
gates() { tests/tools/gates.sh; }

stages=("$@")
if [ ${#stages[@]} -eq 0 ]; then stages=(build_release exhaustive compilers oracles engine_mutants source_mutants proof other_machines valgrind_units bindings tsan_repeated fuzzing gates); fi
for name in "${stages[@]}"; do stage "$name" "$name"; done
