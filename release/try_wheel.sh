#!/bin/sh
# Install the wheel of dist/ that fits this machine, with its locked packages and without a compiler, and use it.
# The release workflow runs this in containers with glibc and musl. It needs Python 3.11 or newer, and nothing else.
set -eu
cd "$(dirname "$0")/.."
environment=$(mktemp -d)
python3 -m venv "$environment"
install() { "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$@"; }
install --require-hashes --requirement requirements/runtime.txt
install --no-index --no-deps --find-links dist perftrail
"$environment/bin/python" release/first_use.py "$environment/bin/perftrail"
rm -rf "$environment"
