#!/usr/bin/env bash
# Writes the report as a comment on the pull request, or replaces the comment of an earlier comparison of the same study.
set -euo pipefail
if ! [[ "$PERFTRAIL_NUMBER" =~ ^[0-9]+$ ]]; then
  printf '::error::%q is not a valid number of a pull request\n' "$PERFTRAIL_NUMBER" >&2
  exit 2
fi
read -r marker < "$PERFTRAIL_REPORT"
if ! [[ "$marker" =~ ^'<!-- perftrail compare '[0-9a-f]{16}' -->'$ ]]; then
  printf '::error::%s does not begin with the marker that perftrail writes\n' "$PERFTRAIL_REPORT" >&2
  exit 2
fi
body="$PERFTRAIL_REPORT"
if [ "$(wc -m < "$body")" -gt 65000 ]; then # GitHub limits a comment to 65,536 characters
  body="$RUNNER_TEMP/perftrail/cut.md"
  { head -n 8 -- "$PERFTRAIL_REPORT"; printf '\nThe whole report is too long for a comment: see the summary of the job.\n'; } > "$body"
fi
# gh connects to the GitHub server of this job, which may be an enterprise's own.
host="${GITHUB_SERVER_URL:-https://github.com}"
export GH_HOST="${host#*://}" GH_ENTERPRISE_TOKEN="${GH_TOKEN:-}"

# In a pull request from a fork, the token has no permission to comment.
without() {
  printf '::notice::no comment was written: it needs the permission pull-requests: write; the summary of the job has the report\n'
  exit 0
}

# Replaces only comments of this user, because anybody may write a comment that begins with the marker.
user="$(gh api user --jq .login 2> /dev/null)" || user="github-actions[bot]"
if ! [[ "$user" =~ ^[A-Za-z0-9_.-]+(\[bot\])?$ ]]; then
  user="github-actions[bot]"
fi
comments="repos/$GITHUB_REPOSITORY/issues"
earlier="$(gh api --paginate "$comments/$PERFTRAIL_NUMBER/comments" \
  --jq ".[] | select(.user.login == \"$user\" and (.body | startswith(\"$marker\"))) | .id")" || without
earlier="${earlier%%$'\n'*}" # the first of several
if [[ "$earlier" =~ ^[0-9]+$ ]]; then
  gh api --silent --method PATCH "$comments/comments/$earlier" -F "body=@$body" || without
else
  gh api --silent --method POST "$comments/$PERFTRAIL_NUMBER/comments" -F "body=@$body" || without
fi
