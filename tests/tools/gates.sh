#!/usr/bin/env bash
# Shows that gates turn red: plants one mistake in a copy of the sources, builds it as the gate does, and demands that the gate's test fails with
# the gate's own message. gates.sh [gate...]: asan, ubsan, tsan, msan, valgrind, fuzz, coverage; without a name,
# all.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$root/build/gates

# plant FILE OLD NEW: exactly one place of a file of the copy is changed.
plant() {
  python3 - "$work/tree/$1" "$2" "$3" <<'PYTHON'
import pathlib, sys
path, old, new = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
text = path.read_text()
assert text.count(old) == 1, f"{path}: the place to plant the mistake is there {text.count(old)} times: {old}"
path.write_text(text.replace(old, new))
PYTHON
}

# build PRESET TARGET...: in the copy.
build() {
  local preset=$1
  shift
  (cd "$work/tree" && cmake --preset "$preset" -B "$work/$preset" && cmake --build "$work/$preset" --target "$@") >"$work/build.log" 2>&1 ||
    { tail -n 30 "$work/build.log"; return 1; }
}

# demand_red GATE MESSAGE COMMAND...: the command fails and says MESSAGE.
demand_red() {
  local gate=$1 message=$2 status=0
  shift 2
  "$@" >"$work/$gate.log" 2>&1 || status=$?
  if [ $status -eq 0 ]; then
    echo "$gate: the planted mistake was not noticed"
    return 1
  fi
  grep -q -- "$message" "$work/$gate.log" || { echo "$gate: failed, but not with \"$message\""; tail -n 30 "$work/$gate.log"; return 1; }
  echo "$gate: red, with \"$message\""
}

gate_asan() {
  plant src/base/source.cpp 'memcpy(to, data_ + offset, bytes);' 'memcpy(to, data_ + offset, bytes), reinterpret_cast<volatile const char *>(data_ + offset)[bytes];'
  build asan-ubsan unit_checkpoint_faults
  demand_red asan heap-buffer-overflow ctest --test-dir "$work/asan-ubsan" -R '^unit\.checkpoint_faults$' --output-on-failure
}

gate_ubsan() {
  plant src/format/checkpoint.cpp '  pi_checkpoint_header h;
  h.format = format;' '  volatile int32_t product = load_i32(shape) * load_i32(shape + 4);
  (void)product;
  pi_checkpoint_header h;
  h.format = format;'
  build asan-ubsan unit_checkpoint_faults
  demand_red ubsan 'signed integer overflow' ctest --test-dir "$work/asan-ubsan" -R '^unit\.checkpoint_faults$' --output-on-failure
}

gate_tsan() {
  plant src/base/object.h 'return busy_.exchange(1, std::memory_order_acquire) == 0;' 'uint32_t was = busy_;
    busy_ = 1;
    return was == 0;'
  plant src/base/object.h 'busy_.store(0, std::memory_order_release);' 'busy_ = 0;'
  plant src/base/object.h 'std::atomic<uint32_t> busy_{0};' 'uint32_t busy_ = 0;'
  build tsan unit_life_cycle
  TSAN_OPTIONS=halt_on_error=1 demand_red tsan 'ThreadSanitizer: data race' ctest --test-dir "$work/tsan" -R '^unit\.life_cycle$' --output-on-failure
}

# What the tokenizer looks pieces up in is not filled any more.
plant_unwritten() {
  plant src/model/tokenizer_splits.cpp 'for (size_t i = 0; i < by_length_.count(); i++) by_length_[i] = kNoLink;' ''
}

gate_msan() {
  plant_unwritten
  build msan fuzz_replay_tokenizer
  demand_red msan 'MemorySanitizer: use-of-uninitialized-value' ctest --test-dir "$work/msan" -R '^fuzz\.tokenizer$' --output-on-failure
}

gate_valgrind() {
  plant_unwritten
  build valgrind api_tour_shared proofinfer_small_model
  demand_red valgrind 'depends on uninitialised value' ctest --test-dir "$work/valgrind" -R '^valgrind\.api_tour$' --output-on-failure
  plant src/model/tokenizer_splits.cpp 'if (Status status = link_pieces({vocabulary, true}' 'for (size_t i = 0; i < by_length_.count(); i++) by_length_[i] = kNoLink;
    if (Status status = link_pieces({vocabulary, true}'

  plant src/base/os_posix.cpp 'void os_heap_free(void *memory) { free(memory); }' 'void os_heap_free(void *) {}'
  build valgrind api_tour_shared proofinfer_small_model
  demand_red valgrind 'definitely lost' ctest --test-dir "$work/valgrind" -R '^valgrind\.api_tour$' --output-on-failure
}

gate_fuzz() {
  plant src/format/checkpoint.cpp 'if (*format == PI_FORMAT_V1' 'if (*format == PI_FORMAT_V2 && load_i32(first + 37) == 2) __builtin_abort();
    if (*format == PI_FORMAT_V1'
  build fuzz fuzz_make_seeds fuzz_model fuzz_replay_model
  demand_red fuzz_replay 'fuzz.model' ctest --test-dir "$work/fuzz" -R '^fuzz\.model$' --output-on-failure
  rm -rf "$work/tree/fuzz/corpus/model"
  demand_red fuzz 'model: a find: .*crash-' python3 -B "$work/tree/fuzz/run.py" --build-dir "$work/fuzz" --seconds 20 model
}

gate_coverage() {
  plant src/format/convert.cpp 'if (probe != 0.0f)' 'if (probe != 0.0f || probe != probe)'
  demand_red coverage '1 branches are never taken; the list of exceptions says 0' "$work/tree/tests/tools/coverage.sh" "$work/coverage"
  plant src/format/convert.cpp 'if (probe != 0.0f || probe != probe)' 'if (probe != 0.0f)'
  plant tests/data/coverage_exceptions.txt 'src/format/convert.cpp, 1: switch' 'src/format/convert.cpp, 2: switch'
  demand_red coverage 'the list of exceptions says 2' "$work/tree/tests/tools/coverage.sh" "$work/coverage"
  find "$work/tree/fuzz/corpus" -type f ! -name '*0' -delete
  demand_red coverage 'failed minimum line coverage' "$work/tree/tests/tools/coverage.sh" "$work/coverage"
}

gates=("$@")
if [ ${#gates[@]} -eq 0 ]; then gates=(asan ubsan tsan msan valgrind fuzz coverage); fi
for gate in "${gates[@]}"; do
  rm -rf "$work/tree"
  mkdir -p "$work/tree"
  git ls-files -z | xargs -0 tar -c | tar -x -C "$work/tree"
  "gate_$gate"
done
echo "red: ${gates[*]}"
