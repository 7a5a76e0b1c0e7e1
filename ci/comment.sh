#!/usr/bin/env bash
# Writes the report as a comment of the pull request, over the one that an earlier run of the same study left.
set -euo pipefail
if ! [[ "$PERFTRAIL_NUMBER" =~ ^[0-9]+$ ]]; then
  echo "the pull request has no number" >&2
  exit 2
fi
read -r marker < "$PERFTRAIL_REPORT"
if ! [[ "$marker" =~ ^'<!-- perftrail compare '[0-9a-f]{16}' -->'$ ]]; then
  echo "the report does not begin with its mark" >&2
  exit 2
fi
body="$PERFTRAIL_REPORT"
if [ "$(wc -m < "$body")" -gt 65000 ]; then # a comment may have 65,536 letters
  body="$RUNNER_TEMP/perftrail/cut.md"
  { head -n 8 -- "$PERFTRAIL_REPORT"; printf '\nThe rest is too long for a comment: the summary of the job has it.\n'; } > "$body"
fi
# On a GitHub of one's own, gh asks that one.
host="${GITHUB_SERVER_URL:-https://github.com}"
export GH_HOST="${host#*://}" GH_ENTERPRISE_TOKEN="${GH_TOKEN:-}"

# Whoever asked for the pull request from a fork has a token that may not comment.
without() {
  printf '::notice::no comment was written, which takes the permission pull-requests: write; the summary says the same\n'
  exit 0
}

# Only our own comment is written over: anybody may write one that begins with the mark.
me="$(gh api user --jq .login 2> /dev/null)" || me="github-actions[bot]"
if ! [[ "$me" =~ ^[A-Za-z0-9_.-]+(\[bot\])?$ ]]; then
  me="github-actions[bot]"
fi
comments="repos/$GITHUB_REPOSITORY/issues"
known="$(gh api --paginate "$comments/$PERFTRAIL_NUMBER/comments" \
  --jq ".[] | select(.user.login == \"$me\" and (.body | startswith(\"$marker\"))) | .id")" || without
known="${known%%$'\n'*}" # the first of several
if [[ "$known" =~ ^[0-9]+$ ]]; then
  gh api --silent --method PATCH "$comments/comments/$known" -F "body=@$body" || without
else
  gh api --silent --method POST "$comments/$PERFTRAIL_NUMBER/comments" -F "body=@$body" || without
fi
