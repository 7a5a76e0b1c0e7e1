#!/usr/bin/env bash
# Compares base and head as the variables PERFTRAIL_* define, and writes the outputs of the step. Exits 2 for wrong usage
# only: the step Gate fails the job, after the comment.
set -euo pipefail
home="$RUNNER_TEMP/perftrail"
mkdir -p -- "$home"

fail() {
  printf '::error::%s\n' "$1" >&2
  exit 2
}

# In a container, another user owns the checkout. It is safe, because the job itself checked it out.
run_git() {
  git -c safe.directory='*' "$@"
}

# Prints the id of a commit: of a name, which is never an option whatever its letters, or of an id. A commit without a
# branch, as before a forced push, is fetched by its id.
commit() {
  run_git rev-parse --verify --quiet --end-of-options "$1^{commit}" && return
  run_git rev-parse --verify --quiet --end-of-options "refs/remotes/origin/$1^{commit}" && return
  if [[ "$1" =~ ^[0-9a-f]{40,64}$ ]] && run_git fetch --quiet --no-tags origin "$1" 2> /dev/null; then
    run_git rev-parse --verify --quiet --end-of-options "$1^{commit}" && return
  fi
  fail "$2 is not a commit of this checkout; $3"
}

remedy="check out with fetch-depth: 0"
shallow="$(run_git rev-parse --is-shallow-repository)" || fail "this directory is not a checkout; run actions/checkout first"
if [ "$shallow" = true ]; then
  run_git fetch --quiet --unshallow || fail "the checkout is shallow; $remedy"
fi
head="$(commit "$PERFTRAIL_HEAD" "the head" "$remedy")"
target=""
if [ -n "$PERFTRAIL_BASE" ]; then
  base="$(commit "$PERFTRAIL_BASE" "the base" "$remedy")"
elif [ -n "$PERFTRAIL_TARGET" ]; then
  target="$(commit "$PERFTRAIL_TARGET" "the target of the pull request" "$remedy")"
elif [ -n "${PERFTRAIL_BEFORE//0/}" ]; then
  base="$(commit "$PERFTRAIL_BEFORE" "the branch's head before the push, $PERFTRAIL_BEFORE," "set the input base")"
elif [ -n "$PERFTRAIL_DEFAULT" ]; then # a new branch, or a job that a user started
  target="$(commit "$PERFTRAIL_DEFAULT" "the default branch" "$remedy")"
else
  fail "this event has no base for the comparison; set the input base"
fi
if [ -n "$target" ]; then
  base="$(run_git merge-base "$target" "$head")" ||
    fail "the head $head and the target $target have no common ancestor; set the input base"
fi

options=(--fail-on "$PERFTRAIL_FAIL_ON" --confidence "$PERFTRAIL_CONFIDENCE")
[ -z "$PERFTRAIL_THRESHOLD" ] || options+=(--threshold "$PERFTRAIL_THRESHOLD")
[ -z "$PERFTRAIL_BUDGET" ] || options+=(--budget "$PERFTRAIL_BUDGET")
[ "$PERFTRAIL_EXPLAIN" != true ] || options+=(--explain)
while IFS= read -r line; do
  [ -z "$line" ] || options+=(--metric "$line")
done <<< "$PERFTRAIL_METRIC"
while IFS= read -r line; do
  [ -z "$line" ] || options+=(--benchmark "$line")
done <<< "$PERFTRAIL_BENCHMARK"

study="$PERFTRAIL_STUDY"
[[ "$study" != -* ]] || study="./$study" # a path, not an option; base and head are commit ids
# A step before this one may have restored the results from the job's cache, on another machine. Results that the
# repository itself contains are not accepted, as git tracks them.
"$home/venv/bin/perftrail" store accept "$study"
rm -f -- "$home/comment.md" "$home/junit.xml" "$home/answer.json"
code=0
"$home/venv/bin/perftrail" compare "${options[@]}" --format github --output "$home/comment.md" \
  --also "junit=$home/junit.xml" --also "json=$home/answer.json" "$base" "$head" "$study" || code=$?
if [ "$code" -eq 2 ] || [ ! -f "$home/comment.md" ]; then
  exit "$((code ? code : 1))"
fi
verdict="$("$home/venv/bin/python" -I -c 'import json, sys; print(json.load(open(sys.argv[1]))["verdict"])' "$home/answer.json")"
{
  printf 'code=%s\n' "$code"
  printf 'verdict=%s\n' "$verdict"
  printf 'report=%s\n' "$home/comment.md"
  printf 'junit=%s\n' "$home/junit.xml"
  printf 'json=%s\n' "$home/answer.json"
} >> "$GITHUB_OUTPUT"
