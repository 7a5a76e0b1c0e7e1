#!/usr/bin/env bash
# Installs perftrail from the action's checkout into a new environment. Its dependencies and its build backend have the
# versions and hashes of requirements/action.txt. The current directory is the checkout of other people: no Python imports
# from it (-I).
set -euo pipefail
home="$RUNNER_TEMP/perftrail"
mkdir -p -- "$home"
"$PERFTRAIL_PYTHON" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "::error::perftrail needs Python 3.11 or newer; name one with the input python" >&2
  exit 2
}
"$PERFTRAIL_PYTHON" -I -m venv -- "$home/venv"
pip=("$home/venv/bin/python" -I -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" --require-hashes --requirement "$GITHUB_ACTION_PATH/requirements/action.txt"
"${pip[@]}" --no-build-isolation --no-deps "$GITHUB_ACTION_PATH"
