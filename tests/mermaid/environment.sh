#!/usr/bin/env bash
# The real Mermaid in a folder of its own (about 180 MB, half a minute): tests/mermaid/environment.sh FOLDER.
# The tests marked `mermaid` find it by OUTLIVES_MERMAID=FOLDER.
set -euo pipefail
mkdir -p "$1"
cp "$(dirname "$0")/package.json" "$1"
npm install --prefix "$1" --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error
