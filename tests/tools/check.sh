#!/usr/bin/env bash
# Installs what is missing, builds the release and passes all of its tests: the second command of the README.
set -euo pipefail
cd "$(dirname "$0")/../.."

tests/tools/install_dependencies.sh test
cmake --preset release ${CI:+-DPROOFINFER_WERROR=ON}
cmake --build --preset release
exec python3 -B tests/tools/run_tests.py --build-dir build/release -j "$(nproc)" "$@"
