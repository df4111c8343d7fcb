#!/usr/bin/env bash
# The environment of diff_test.py, dequantize_test.py and of the mutation runs, in build/oracles: install.sh [all]. "all" adds the oracles that are not PyTorch's:
# transformers, and llama.cpp through npm. Needs Debian's python3-torch and python3-venv (tests/tools/install_dependencies.sh ci).
set -euo pipefail
cd "$(dirname "$0")/.."

folder=build/oracles
# Debian's Python, whose packages PyTorch is among.
[ -x $folder/bin/python ] || /usr/bin/python3 -m venv --system-site-packages $folder
$folder/bin/python -c 'import numpy, torch'
$folder/bin/python -m pip install -q --no-input jinja2==3.1.6
# Without what they depend on: mutants and dequantization alone are asked of them.
$folder/bin/python -m pip install -q --no-input --no-deps universalmutator==1.14.1 gguf==0.17.1
if [ "${1:-}" = all ]; then
  # The last transformers that take Debian 12's PyTorch 1.13 and numpy 1.24.
  $folder/bin/python -m pip install -q --no-input transformers==4.39.3 'numpy<2'
  mkdir -p $folder/node
  [ -f $folder/node/package.json ] || echo '{"private": true}' >$folder/node/package.json
  (cd $folder/node && npm install node-llama-cpp@3.21.1 --ignore-scripts --no-audit --no-fund --silent)
fi
