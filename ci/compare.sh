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

# The commit that a name means; whatever the name looks like, it is never an option.
commit() {
  git rev-parse --verify --quiet --end-of-options "$1^{commit}" \
    || git rev-parse --verify --quiet --end-of-options "refs/remotes/origin/$1^{commit}" \
    || refuse "${2} is no commit of this checkout; check out with fetch-depth: 0"
}

if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
  git fetch --quiet --unshallow || refuse "the checkout is shallow; check out with fetch-depth: 0"
fi
head="$(commit "$PERFTRAIL_HEAD" "the head")"
if [ -n "$PERFTRAIL_BASE" ]; then
  base="$(commit "$PERFTRAIL_BASE" "the base")"
elif [ -n "$PERFTRAIL_TARGET" ]; then
  target="$(commit "$PERFTRAIL_TARGET" "the target of the pull request")"
  base="$(git merge-base "$target" "$head")" || refuse "the pull request shares no commit with its target"
elif [ -n "${PERFTRAIL_BEFORE//0/}" ]; then
  base="$(commit "$PERFTRAIL_BEFORE" "what was there before the push")"
else
  refuse "there is nothing to compare with; give the input base"
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
