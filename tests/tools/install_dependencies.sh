#!/usr/bin/env bash
# Installs what is missing on a Debian or Ubuntu machine: install_dependencies.sh [test|proof|ci]. "test" (the default): building and the tests.
# "proof": also the proof tool and its provers. "ci": also those, the second compiler, the analysers, the documentation, and what the bindings
# and the oracles need. Does nothing, and needs no rights, where all is there.
set -euo pipefail

packages=(g++ cmake ninja-build libgtest-dev nlohmann-json3-dev python3 pkg-config dpkg-dev file)
missing=()
if [ "${1:-test}" = proof ] || [ "${1:-test}" = ci ]; then
  packages+=(frama-c-base why3 z3 cvc4 cvc5 binutils)
fi
if [ "${1:-test}" = ci ]; then
  packages+=(git curl clang lld llvm clang-format-14 clang-tidy-14 libclang-rt-14-dev valgrind gcovr doxygen abigail-tools)
  # What may have come another way than from Debian is asked for by its command.
  command -v node >/dev/null || packages+=(nodejs)
  command -v npm >/dev/null || packages+=(npm)
  packages+=(python3-torch)
  python3 -c 'import ensurepip, venv' 2>/dev/null && /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
  # From 1.21 on, Go fetches the version that go.mod names.
  go_version=go0
  if command -v go >/dev/null; then go_version=$(go env GOVERSION); fi
  [ "$(printf '%s\n' go1.21 "$go_version" | sort -V | head -n 1)" = go1.21 ] || missing+=(golang-go)
fi

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
case " ${missing[*]} " in *' golang-go '*)
  # Debian 12 itself has Go 1.19; its backports, on the mirror in use, have a newer one.
  go_version=$(apt-cache policy golang-go | sed -n 's/^ *Candidate: *\([0-9]*:\)\?//p')
  if dpkg --compare-versions "$go_version" lt 1.21; then
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" "Component: main" "Identifier: Packages" | head -n 1)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release-backports main" |
      "${as_root[@]}" tee /etc/apt/sources.list.d/proofinfer-backports.list
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" apt-get install -y -q --no-install-recommends -t "$release-backports" golang-go
  fi ;;
esac
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
