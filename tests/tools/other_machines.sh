#!/usr/bin/env bash
# The recorded figures and the kernels of GGUF's types on other machines, under qemu-user: other_machines.sh quick|all|install [machine...]. "quick"
# leaves the largest models, the splits and most drawn cases out; "install" only gets what the machines need. Machines: aarch64, riscv64, s390x
# (big-endian), built with Debian's cross compilers; westmere and haswell, x86-64 CPUs without AVX and without AVX-512, which run the objects of the
# native build named by NATIVE_BUILD (default build/release): forcing a kernel set would not catch an instruction that strayed. Prints the kernel sets
# that each machine ran.
set -euo pipefail
cd "$(dirname "$0")/../.."

scope=$1
shift
machines=("$@")
if [ ${#machines[@]} -eq 0 ]; then machines=(aarch64 riscv64 s390x westmere haswell); fi
native=${NATIVE_BUILD:-build/release}
filter='*'
if [ "$scope" = quick ]; then
  export PROOFINFER_KERNEL_CASES=200
  filter='*Golden*-*15M*:*260K*:*q80_gqa*:*f32_gqa4*:*f32_deep*'
fi

install_for() {
  local packages=(qemu-user) package missing=()
  case "$1" in aarch64 | riscv64 | s390x) packages+=("g++-$1-linux-gnu" googletest) ;; esac
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
    "${as_root[@]}" apt-get update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
  fi
}

run_figures() {
  local machine=$1 program=$2
  shift 2
  "$@" "$program" --gtest_brief=1 --gtest_filter="$filter"
  "$@" "$program" --gtest_list_tests --gtest_filter='Isa/Splits.parts*' | sed -n "s|.*one_by_one/||; s|.*tokens/\([a-z0-9]*\).*|$machine ran \1|p"
}

for machine in "${machines[@]}"; do
  printf -- '--- %s\n' "$machine"
  install_for "$machine"
  if [ "$scope" = install ]; then continue; fi
  case "$machine" in
    westmere | haswell)
      qemu-x86_64 -cpu "${machine^}" "$native/tests/unit/unit_block_kernels" --gtest_brief=1 | grep -v SKIPPED
      run_figures "$machine" "$native/tests/conformance/conformance_golden_logits" qemu-x86_64 -cpu "${machine^}"
      ;;
    *)
      cmake -S . -B "build/$machine" -G Ninja -DCMAKE_TOOLCHAIN_FILE="tests/tools/cross/$machine.cmake" -DCMAKE_BUILD_TYPE=Release \
        -DPROOFINFER_BUILD_TESTS=ON -DPROOFINFER_BUILD_PROGRAM=OFF >"build/$machine.configure.log"
      cmake --build "build/$machine" --target conformance_golden_logits unit_block_kernels
      "qemu-$machine" -L "/usr/$machine-linux-gnu" "build/$machine/tests/unit/unit_block_kernels" --gtest_brief=1 | grep -v SKIPPED
      run_figures "$machine" "build/$machine/tests/conformance/conformance_golden_logits" "qemu-$machine" -L "/usr/$machine-linux-gnu"
      ;;
  esac
done
