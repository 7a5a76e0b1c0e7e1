#!/bin/sh
# Print the section of a version in CHANGELOG.md: release/notes.sh 0.1.0. Exits with 1 if there is none.
set -eu
awk -v heading="## [$1]" '
  index($0, "## ") == 1 { inside = index($0, heading) == 1; found = found || inside; next }
  /^\[[^]]*\]: / { next }
  inside
  END { exit !found }
' "$(dirname "$0")/../CHANGELOG.md"
