#!/usr/bin/env bash
# Compares what the variables PERFTRAIL_* say, and tells the next steps what came of it. Exits 2 for wrong usage only:
# the gate itself fails in a step of its own, after the comment.
set -euo pipefail
home="$RUNNER_TEMP/perftrail"
mkdir -p -- "$home"

refuse() {
  printf '::error::%s\n' "$1" >&2
  exit 2
}

# In a container the checkout belongs to somebody else than us; it is the job's own all the same.
ask() {
  git -c safe.directory='*' "$@"
}

# The commit that a name means; whatever the name looks like, it is never an option. One that no branch leads to, as
# before a forced push, is asked for by its id.
commit() {
  ask rev-parse --verify --quiet --end-of-options "$1^{commit}" && return
  ask rev-parse --verify --quiet --end-of-options "refs/remotes/origin/$1^{commit}" && return
  if [[ "$1" =~ ^[0-9a-f]{40,64}$ ]] && ask fetch --quiet --no-tags origin "$1" 2> /dev/null; then
    ask rev-parse --verify --quiet --end-of-options "$1^{commit}" && return
  fi
  refuse "$2 is no commit of this checkout; $3"
}

deeper="check out with fetch-depth: 0"
shallow="$(ask rev-parse --is-shallow-repository)" || refuse "there is no checkout here; run actions/checkout first"
if [ "$shallow" = true ]; then
  ask fetch --quiet --unshallow || refuse "the checkout is shallow; $deeper"
fi
head="$(commit "$PERFTRAIL_HEAD" "the head" "$deeper")"
target=""
if [ -n "$PERFTRAIL_BASE" ]; then
  base="$(commit "$PERFTRAIL_BASE" "the base" "$deeper")"
elif [ -n "$PERFTRAIL_TARGET" ]; then
  target="$(commit "$PERFTRAIL_TARGET" "the target of the pull request" "$deeper")"
elif [ -n "${PERFTRAIL_BEFORE//0/}" ]; then
  base="$(commit "$PERFTRAIL_BEFORE" "what was there before the push" "give the input base")"
elif [ -n "$PERFTRAIL_DEFAULT" ]; then # a new branch, or a job that was started by hand
  target="$(commit "$PERFTRAIL_DEFAULT" "the default branch" "$deeper")"
else
  refuse "there is nothing to compare with; give the input base"
fi
if [ -n "$target" ]; then
  base="$(ask merge-base "$target" "$head")" || refuse "the head shares no commit with what it is compared with"
fi

words=(--fail-on "$PERFTRAIL_FAIL_ON" --confidence "$PERFTRAIL_CONFIDENCE")
[ -z "$PERFTRAIL_SMALLEST" ] || words+=(--smallest "$PERFTRAIL_SMALLEST")
[ -z "$PERFTRAIL_BUDGET" ] || words+=(--budget "$PERFTRAIL_BUDGET")
while IFS= read -r line; do
  [ -z "$line" ] || words+=(--metric "$line")
done <<< "$PERFTRAIL_METRIC"
while IFS= read -r line; do
  [ -z "$line" ] || words+=(--benchmark "$line")
done <<< "$PERFTRAIL_BENCHMARK"

rm -f -- "$home/comment.md" "$home/junit.xml" "$home/answer.json"
code=0
"$home/venv/bin/perftrail" compare "${words[@]}" --format github --output "$home/comment.md" \
  --also "junit=$home/junit.xml" --also "json=$home/answer.json" -- "$base" "$head" "$PERFTRAIL_STUDY" || code=$?
if [ "$code" -eq 2 ] || [ ! -f "$home/comment.md" ]; then
  exit "$((code ? code : 1))"
fi
verdict="$("$home/venv/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["verdict"])' "$home/answer.json")"
{
  printf 'code=%s\n' "$code"
  printf 'verdict=%s\n' "$verdict"
  printf 'report=%s\n' "$home/comment.md"
  printf 'junit=%s\n' "$home/junit.xml"
  printf 'json=%s\n' "$home/answer.json"
} >> "$GITHUB_OUTPUT"
