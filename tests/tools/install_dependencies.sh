#!/usr/bin/env bash
# Installs what is missing on a Debian or Ubuntu machine: install_dependencies.sh [test|ci]. "test" (the default): building and the tests.
# "ci": also the second compiler, the analysers and the documentation. Does nothing, and needs no rights, when all is there.
set -euo pipefail

packages=(g++ cmake ninja-build libgtest-dev nlohmann-json3-dev python3 pkg-config dpkg-dev file)
if [ "${1:-test}" = ci ]; then
  packages+=(git clang lld llvm clang-format-14 clang-tidy-14 libclang-rt-14-dev valgrind doxygen abigail-tools)
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || echo absent)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "nothing is missing"
  exit 0
fi
echo "installing: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
