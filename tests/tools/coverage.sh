#!/usr/bin/env bash
# How much of the code that reads files is reached: coverage.sh [build folder]. The fuzz corpora alone must reach 95 % of the lines of src/format, and
# with the tests of those files every branch of the formats, their layout and the tokenizer must be taken, but for those that
# tests/data/coverage_exceptions.txt lists with the reason.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/coverage}

# Run with all their tests but those whose time is in computing.
tests=(unit/unit_packed unit/unit_gguf unit/unit_gguf_model unit/unit_tokenizer unit/unit_tokenizer_bin unit/unit_tokenizer_gguf unit/unit_tokenizer_words unit/unit_checkpoint_faults conformance/conformance_convert fault/fault_injection)
without='*megabyte*:*direct_algorithm*:*nested*:*scratch*:*truncation_of_a_real*:*two_thousand_random*:*recorded_version_2*:*long_context*:*linear_time*:*starting_threads*:*on_four_threads*'

report() { gcovr --root . --object-directory "$build" "$build/src" --filter 'src/format/' "$@"; }

mkdir -p "$build"
cmake --preset coverage -B "$build" >"$build.configure.log"
cmake --build "$build" --target proofinfer_fuzz_replays "${tests[@]#*/}" >"$build.build.log" || { tail -n 30 "$build.build.log"; exit 1; }

find "$build" -name '*.gcda' -delete
for target in "$build"/fuzz/fuzz_replay_*; do
  "$target" "fuzz/corpus/${target##*/fuzz_replay_}" >"$build/replay.log" || { tail -n 3 "$build/replay.log"; exit 1; }
done
report --fail-under-line 95
printf "$build/tests/%s\n" "${tests[@]}" | xargs -P "$(nproc)" -I{} env {} --gtest_brief=1 --gtest_filter="-$without" >"$build/tests.log" ||
  { cat "$build/tests.log"; exit 1; }
report --filter 'src/model/tokenizer' --filter 'src/proved/checkpoint_layout' --json "$build/coverage.json"
python3 -B tests/tools/check_branches.py "$build/coverage.json" tests/data/coverage_exceptions.txt
