#!/usr/bin/env bash
# Writes requirements/*.txt: what pyproject.toml asks for, pinned and hashed for every platform; and the same for the
# generators of tests/generators, which have an environment of their own.
# Versions that still fit stay; `scripts/lock.sh --upgrade` takes the newest ones.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=$(command -v uv || true)
[ -n "$uv" ] || uv=.venv/bin/uv
if [ ! -x "$uv" ]; then
    echo "make lock needs uv on PATH, or in .venv: .venv/bin/pip install uv" >&2
    exit 1
fi

# A machine's own settings (mirrors, local folders) must not decide what is locked.
unset UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS
export UV_NO_CONFIG=1

# Nexo itself is built with the pinned backend, see scripts/venv.sh; hatchling asks for editables at that time.
build_requirements=$("${PYTHON:-python3}" -c '
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], "editables", sep="\n")')

compile() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --no-strip-extras "$@" pyproject.toml - <<<"$build_requirements" >/dev/null
}

compile "$@" --group test --output-file requirements/test.txt
compile "$@" --constraints requirements/test.txt --output-file requirements/run.txt  # never other versions
"$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@" \
    tests/generators/requirements.in --output-file tests/generators/requirements.txt >/dev/null

if grep -nE '://|^-|/(work|opt|root|home|Users)/' requirements/*.txt tests/generators/requirements.txt; then
    echo "The lock files must name no address and no folder." >&2
    exit 1
fi
