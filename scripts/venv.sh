#!/usr/bin/env bash
# Makes .venv hold the versions of a lock file, Nexo itself from this folder, and further packages from theirs.
# Usage: scripts/venv.sh requirements/run.txt [FOLDER...]
set -euo pipefail
cd "$(dirname "$0")/.."

lock=$1
shift
editable=(--editable .)
for folder in "$@"; do editable+=(--editable "./$folder"); done
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Nexo needs Python 3.11 or newer; $python is not. Name another: make PYTHON=python3.12" >&2
    exit 1
fi

if [ ! -x .venv/bin/python ]; then
    if command -v uv >/dev/null; then
        uv venv --quiet --seed --python "$python" .venv
    else
        # Debian splits this off Python; without it `venv` stops half-way and leaves a broken folder.
        "$python" -c 'import ensurepip' 2>/dev/null || scripts/apt-install.sh python3-venv
        "$python" -m venv .venv
    fi
fi

# In a terminal pip shows what it does; in a log one line is enough.
quiet=(--quiet)
if [ -t 1 ]; then quiet=(); fi
echo "Installing $(grep -c '==' "$lock") packages into .venv. This is done once and takes about a minute."

# The lock files pin the build backend too, so that building Nexo itself downloads nothing unpinned.
if command -v uv >/dev/null; then
    uv pip install ${quiet[@]+"${quiet[@]}"} --python .venv/bin/python --require-hashes -r "$lock"
    uv pip install --quiet --python .venv/bin/python --no-build-isolation --no-deps "${editable[@]}"
else
    export PIP_DISABLE_PIP_VERSION_CHECK=1
    .venv/bin/python -m pip install ${quiet[@]+"${quiet[@]}"} --require-hashes -r "$lock"
    .venv/bin/python -m pip install --quiet --no-build-isolation --no-deps "${editable[@]}"
fi
