"""The action for GitHub and the template for GitLab: no expression in a shell line, and their scripts run for real.

Only the network is fake: a program `gh` on the path records its calls, and environment variables choose its answers.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from perftrail.cli.commands.compare import command
from tests.docs.pages import DOCS, blocks
from tests.sources.repositories import Repository
from tests.starting import REPOSITORY

pytestmark = pytest.mark.slow("starts")

ACTION = REPOSITORY / "action.yml"
TEMPLATE = REPOSITORY / "ci" / "perftrail.gitlab-ci.yml"

STUDY = """\
[study]
title = "Is it slower?"

[source]
kind = "git"
location = "."

[benchmark.work]
command = "sh {build}/work"
metrics.steps = { pattern = 'steps ([0-9]+)' }

[measure]
invocations = "3..20"
warmups = 0
"""

GH = """\
#!{python}
import json, os, sys
words = sys.argv[1:]
call = {{"words": words, "host": os.environ["GH_HOST"]}}
for word in words:
    if word.startswith("body=@"):
        call["body"] = open(word.removeprefix("body=@"), encoding="utf-8").read()
with open(os.environ["GH_LOG"], "a") as log:
    log.write(json.dumps(call) + "\\n")
if "user" in words:
    sys.exit(1)  # as for a token of a job
if os.environ.get("GH_READ_ONLY") and "--method" in words:
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
if "--paginate" in words and os.environ.get("GH_KNOWN"):
    print(os.environ["GH_KNOWN"])
"""


def action() -> dict[str, Any]:
    return dict(yaml.safe_load(ACTION.read_text()))


def steps() -> list[dict[str, Any]]:
    return list(action()["runs"]["steps"])


@dataclass(frozen=True)
class Template:
    """A repository and a checkout of its branch `side`, which each job copies."""

    directory: Path
    base: str
    main: str
    head: str


@pytest.fixture(scope="module", autouse=True)
def template(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make the repository and the checkout that all jobs copy."""
    directory = tmp_path_factory.mktemp("template")
    repository = Repository(directory / "origin")
    base = repository.commit(Job.files(100), subject="begin")
    main = repository.commit(Job.files(50), subject="main goes on")
    head = repository.commit(Job.files(120), subject="slower", parents=[base], branch="side")
    subprocess.run(["git", "clone", "-q", "origin", "checkout"], cwd=directory, check=True)
    subprocess.run(["git", "checkout", "-q", head], cwd=directory / "checkout", check=True)
    Job.template = Template(directory, base, main, head)


class Job:
    """A job of a pull request in a checkout. Tests run the steps of the action one by one."""

    template: ClassVar[Template]

    def __init__(self, directory: Path, **inputs: str) -> None:
        made = self.template
        self.base, self.main, self.head = made.base, made.main, made.head
        self.repository = Repository(directory / "origin")
        self.checkout = directory / "checkout"
        for copy in (self.repository.path, self.checkout):
            shutil.copytree(made.directory / copy.name, copy, symlinks=True, dirs_exist_ok=True)
        self.git("remote", "set-url", "origin", str(self.repository.path))
        self.temp = directory / "temp"
        (self.temp / "perftrail").mkdir(parents=True)
        programs = directory / "programs"
        programs.mkdir()
        (programs / "gh").write_text(GH.format(python=sys.executable))
        (programs / "gh").chmod(0o755)
        # The first step would install perftrail here. The tests use the perftrail that they test.
        (self.temp / "perftrail" / "venv").symlink_to(Path(sys.executable).parents[1])
        self.log, self.outputs = directory / "gh.log", directory / "outputs"
        self.expressions = {
            **{f"inputs.{name}": str(each["default"]) for name, each in action()["inputs"].items()},
            "github.event.pull_request.head.sha": self.head,
            "github.event.pull_request.base.sha": self.main,
            "github.event.pull_request.number": "7",
            **{f"inputs.{name.replace('_', '-')}": text for name, text in inputs.items()},
        }
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(REPOSITORY),
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(self.outputs),
            "GITHUB_STEP_SUMMARY": str(directory / "summary"),
            "GITHUB_WORKSPACE": str(self.checkout),
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_SERVER_URL": "https://github.example.org",
            "GH_LOG": str(self.log),
        }

    def run(self, name: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a step's shell lines as the runner would, and read the outputs of the step."""
        [step] = [each for each in steps() if each["name"] == name]
        step_env = {key: self._evaluate(str(text)) for key, text in step["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.checkout,
            env={**self.env, **step_env, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if self.outputs.exists():
            for line in self.outputs.read_text().splitlines():
                key, _, text = line.partition("=")
                self.expressions[f"steps.compare.outputs.{key}"] = text
        return done

    def replace_event(self, **values: str) -> None:
        """Replace the pull request by another event, with these values of `github`."""
        for name in ("pull_request.head.sha", "pull_request.base.sha", "pull_request.number"):
            del self.expressions[f"github.event.{name}"]
        self.expressions |= {f"github.{name.replace('__', '.')}": text for name, text in values.items()}

    def compared_revisions(self, **env: str) -> tuple[str, str]:
        """Return base and head of the comparison's step, without a comparison."""
        arguments = self.compare_arguments(**env)
        base, head = arguments[-3:-1]
        return base, head

    def compare_arguments(self, **env: str) -> list[str]:
        """Return the arguments with which the comparison's step starts perftrail, without a comparison."""
        venv = self.temp / "perftrail" / "venv"
        venv.unlink()
        (venv / "bin").mkdir(parents=True)
        recorded = self.temp / "arguments"
        (venv / "bin" / "perftrail").write_text(
            f'#!/bin/sh\n[ "$1" != store ] || exit 0\nprintf "%s\\n" "$@" > "{recorded}"\nexit 2\n'
        )
        (venv / "bin" / "perftrail").chmod(0o755)
        done = self.run("Compare", **env)
        assert recorded.exists(), done.stderr
        return recorded.read_text().splitlines()

    def gh_calls(self) -> list[dict[str, Any]]:
        """Return the recorded calls of `gh`."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def _evaluate(self, text: str) -> str:
        """Replace the expressions of a variable; of alternatives, the first one that is not empty counts."""

        def value(expression: re.Match[str]) -> str:
            names = [name.strip() for name in expression[1].split("||")]
            return next((self.expressions[name] for name in names if self.expressions.get(name)), "")

        return re.sub(r"\$\{\{(.*?)\}\}", value, text)

    @staticmethod
    def files(steps: int) -> Mapping[str, str]:
        return {"work": f"echo steps {steps}\n", "perftrail.toml": STUDY}

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", self.checkout, *words], check=True, capture_output=True)


def test_no_shell_line_contains_an_expression_and_no_foreign_action_is_used() -> None:
    for step in steps():
        assert "${{" not in step["run"], step["name"]
        assert "uses" not in step
        assert step["shell"] == "bash"
    for script in (REPOSITORY / "ci").glob("*.sh"):
        text = script.read_text()
        assert "${{" not in text
        assert "eval" not in text
        assert "set -euo pipefail" in text.splitlines()[:5]


def test_every_input_is_described_and_reaches_a_step() -> None:
    used = " ".join(str(text) for step in steps() for text in (*step["env"].values(), step.get("if", "")))
    for name, each in action()["inputs"].items():
        assert each["description"]
        assert f"inputs.{name}" in used, name


def test_every_input_of_the_comparison_becomes_an_existing_option(tmp_path: Path) -> None:
    inputs = {"threshold": "2%", "budget": "20min", "metric": "steps", "benchmark": "work"}
    arguments = Job(tmp_path, **inputs).compare_arguments()
    options = {word for word in arguments[:-3] if word.startswith("--")}
    assert options <= {option for parameter in command.params for option in parameter.opts}
    for name, text in inputs.items():
        assert arguments[arguments.index(f"--{name}") + 1] == text


def test_a_slower_pull_request_gets_one_comment_and_then_fails(tmp_path: Path) -> None:
    job = Job(tmp_path)
    done = job.run("Compare")
    assert done.returncode == 0, done.stderr
    assert job.expressions["steps.compare.outputs.code"] == "3"
    assert job.expressions["steps.compare.outputs.verdict"] == "slower"
    report = json.loads(Path(job.expressions["steps.compare.outputs.json"]).read_text())
    # The base is where the branch left its target, not the target's tip, which is faster.
    assert (report["base"]["id"], report["head"]["id"]) == (job.base, job.head)
    assert job.run("Comment").returncode == 0
    calls = job.gh_calls()
    assert calls[-1]["words"][:5] == [
        "api",
        "--silent",
        "--method",
        "POST",
        "repos/owner/name/issues/7/comments",
    ]
    assert calls[-1]["host"] == "github.example.org"
    assert "gate failed" in calls[-1]["body"]
    assert calls[-1]["body"].startswith("<!-- perftrail compare ")
    assert job.run("Comment", GH_KNOWN="4711").returncode == 0  # an earlier run's comment is there
    listed, updated = job.gh_calls()[-2:]
    assert '.user.login == "github-actions[bot]"' in listed["words"][-1]
    assert updated["words"][3:5] == ["PATCH", "repos/owner/name/issues/comments/4711"]
    assert job.run("Gate").returncode == 3


def test_without_permission_to_comment_the_job_continues_with_a_warning(tmp_path: Path) -> None:
    job = Job(tmp_path)
    report = tmp_path / "report.md"
    report.write_text("<!-- perftrail compare 0123456789abcdef -->\nslower\n")
    job.expressions["steps.compare.outputs.report"] = str(report)
    done = job.run("Comment", GH_READ_ONLY="yes")
    assert done.returncode == 0
    assert "::notice::" in done.stdout
    assert "pull-requests: write" in done.stdout


def test_a_push_is_compared_with_the_previous_head_even_if_forced(tmp_path: Path) -> None:
    job = Job(tmp_path)
    gone = job.repository.commit(job.files(90), subject="gone", parents=[job.base], branch="side")
    job.repository.git("update-ref", "refs/heads/side", job.head)
    job.replace_event(sha=job.head, event__before=gone)
    assert job.compared_revisions() == (gone, job.head)


def test_a_base_lost_in_a_forced_push_is_reported_as_missing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.replace_event(sha=job.head, event__before="12" * 20)
    done = job.run("Compare")
    assert done.returncode == 2
    assert (
        f"::error::the branch's head before the push, {'12' * 20}, is not a commit of this checkout; "
        "set the input base" in done.stderr
    )


def test_a_new_branch_is_compared_with_its_branching_point(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.replace_event(sha=job.head, event__before="0" * 40, event__repository__default_branch="main")
    assert job.compared_revisions() == (job.base, job.head)


def test_a_merge_queue_is_compared_with_its_target_branch(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.replace_event(sha=job.head, event__merge_group__base_sha=job.main)
    assert job.compared_revisions() == (job.base, job.head)


def test_a_checkout_of_another_user_is_accepted(tmp_path: Path) -> None:
    job = Job(tmp_path)
    assert job.compared_revisions(GIT_TEST_ASSUME_DIFFERENT_OWNER="1") == (job.base, job.head)


def test_a_shallow_checkout_is_completed_or_reported_with_the_remedy(tmp_path: Path) -> None:
    job = Job(tmp_path)
    shallow = tmp_path / "shallow"
    origin = f"file://{job.repository.path}"
    subprocess.run(["git", "clone", "-q", "--depth", "1", "--branch", "side", origin, shallow], check=True)
    job.checkout = shallow
    moved = job.repository.path.rename(tmp_path / "moved")
    done = job.run("Compare")
    assert done.returncode == 2
    assert "::error::the checkout is shallow; check out with fetch-depth: 0" in done.stderr
    moved.rename(job.repository.path)
    assert job.compared_revisions() == (job.base, job.head)


def test_no_module_of_the_checkout_is_imported(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for name in ("json", "click", "venv", "pip"):
        (job.checkout / f"{name}.py").write_text(f"raise SystemExit('{name} of the checkout')")
    assert job.compared_revisions() == (job.base, job.head)


def test_an_old_python_is_refused_before_anything_is_created(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION_PATH": str(REPOSITORY)}
    script = ["bash", str(REPOSITORY / "ci" / "install.sh")]
    done = subprocess.run(
        script, env={**env, "PERFTRAIL_PYTHON": str(old)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "perftrail" / "venv").exists()


def test_inputs_are_never_used_as_shell_code_or_options(tmp_path: Path) -> None:
    hostile = "$(touch pwned); `touch pwned` --help"
    job = Job(tmp_path, base="--help", metric=hostile, study="$(touch pwned)")
    done = job.run("Compare")
    assert done.returncode == 2
    assert "is not a commit of this checkout" in done.stderr
    job.expressions["inputs.base"] = job.base
    done = job.run("Compare")
    assert done.returncode == 2
    assert "no such file" in done.stderr
    job.expressions["inputs.study"] = "--help"
    done = job.run("Compare")
    assert (done.returncode, "--help: no such file" in done.stderr) == (2, True), done.stderr
    job.expressions["inputs.study"] = "."
    done = job.run("Compare")
    assert done.returncode == 2
    assert "is not a valid metric" in done.stderr
    assert not list(tmp_path.rglob("pwned"))
    assert not job.outputs.exists()


def test_an_unchanged_pull_request_passes(tmp_path: Path) -> None:
    job = Job(tmp_path, head="main", base="main")
    assert job.run("Compare").returncode == 0
    assert job.expressions["steps.compare.outputs.verdict"] == "same"
    assert job.run("Gate").returncode == 0


def test_a_comment_without_the_marker_is_not_sent(tmp_path: Path) -> None:
    job = Job(tmp_path)
    report = tmp_path / "report.md"
    report.write_text("<!-- perftrail compare ') | halt -->\n")
    job.expressions["steps.compare.outputs.report"] = str(report)
    assert job.run("Comment").returncode == 2
    assert not job.log.exists()


class GitLab(BaseHTTPRequestHandler):
    """The notes of a merge request in GitLab's API, for a user with the id 5."""

    notes: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        self._answer({"id": 5} if self.path == "/api/v4/user" else self.notes)

    def do_POST(self) -> None:
        self.notes.append({"id": len(self.notes), "author": {"id": 5}, **self._request_body()})
        self._answer(self.notes[-1])

    def do_PUT(self) -> None:
        note = self.notes[int(self.path.rpartition("/")[2])]
        note |= self._request_body()
        self._answer(note)

    def _request_body(self) -> dict[str, Any]:
        assert self.path.startswith("/api/v4/projects/3/merge_requests/7/notes")
        assert self.headers["PRIVATE-TOKEN"] == "s3cret"
        return dict(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def job_id() -> Iterator[str]:
    """The number of a job of GitLab whose environment is this one."""
    name = f"test-{secrets.token_hex(8)}"
    link = Path("/tmp", f"perftrail-{name}")
    link.symlink_to(Path(sys.executable).parents[1])
    yield name
    link.unlink()


def test_the_template_for_gitlab_writes_one_comment_and_updates_it(tmp_path: Path, job_id: str) -> None:
    marker = "<!-- perftrail compare 0123456789abcdef -->"
    GitLab.notes = [{"id": 0, "author": {"id": 9}, "body": f"{marker}\nnot ours"}]
    (tmp_path / "json.py").write_text("raise SystemExit('the checkout must not be imported')")
    [script] = yaml.safe_load(TEMPLATE.read_text())[".perftrail"]["after_script"]
    with ThreadingHTTPServer(("127.0.0.1", 0), GitLab) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        env = {
            "CI_API_V4_URL": f"http://127.0.0.1:{server.server_address[1]}/api/v4",
            "CI_MERGE_REQUEST_PROJECT_ID": "3",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_JOB_ID": job_id,
            "PERFTRAIL_TOKEN": "s3cret",
        }
        for text, token in (("slower", "s3cret"), ("the same", "s3cret"), ("unseen", "")):
            (tmp_path / "perftrail.md").write_text(f"{marker}\n{text}\n")
            done = subprocess.run(
                ["bash", "-e", "-c", script],
                cwd=tmp_path, env={**env, "PATH": os.environ["PATH"], "PERFTRAIL_TOKEN": token},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        server.shutdown()
    assert [note["body"].splitlines()[1] for note in GitLab.notes] == ["not ours", "the same"]


def test_the_job_of_the_template_for_gitlab_fails_a_slower_branch(tmp_path: Path, job_id: str) -> None:
    job = Job(tmp_path)
    template = yaml.safe_load(TEMPLATE.read_text())[".perftrail"]
    lines = "\n".join(template["script"][2:])  # without the installation
    (job.checkout / ".perftrail" / "logs").mkdir(parents=True)  # as restored from a cache
    (job.checkout / ".perftrail" / "logs" / "a.log").touch()
    (tmp_path / "victim").touch()
    (job.checkout / "perftrail.md").symlink_to(tmp_path / "victim")
    variables = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": job.base, "CI_COMMIT_SHA": job.head, "GITLAB_CI": "true"}
    variables["CI_JOB_ID"] = job_id
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", lines],
        cwd=job.checkout, env={**env, **template["variables"], **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "gate failed: 1 of 1 metric worse: work.steps" in (job.checkout / "perftrail.md").read_text()
    assert "<failure" in (job.checkout / "perftrail.xml").read_text()
    assert (job.checkout / "metrics.txt").is_file()
    assert (tmp_path / "victim").read_text() == ""


def test_an_empty_base_is_explained(tmp_path: Path) -> None:
    job = Job(tmp_path)
    done = subprocess.run(
        [Path(sys.executable).parent / "perftrail", "compare", "", "HEAD", ".", "--format", "github"],
        cwd=job.checkout, env=job.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "fetch-depth: 0" in done.stdout + done.stderr


def test_the_template_for_gitlab_runs_an_existing_command() -> None:
    job = yaml.safe_load(TEMPLATE.read_text())[".perftrail"]
    [line] = [each for each in job["script"] if " compare" in each]
    options = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert set(re.findall(r"(?<= )--[a-z-]+", line)) <= options
    assert job["variables"]["GIT_DEPTH"] == "0"
    assert set(job["artifacts"]["reports"]) == {"metrics", "junit"}
    variables = set(re.findall(r"PERFTRAIL_[A-Z_]+", " ".join(job["script"])))
    assert variables <= set(job["variables"])
    assert re.sub(r'"[^"]*"', "", line).count("$") == 0, "a variable is outside quotes"
    syntax_check = subprocess.run(
        ["bash", "-n", "-c", "\n".join(job["script"])], capture_output=True, check=False
    )
    assert syntax_check.returncode == 0


def guide_blocks() -> list[str]:
    return [block.text for block in blocks(DOCS / "how-to" / "ci.md") if block.kind == "yaml"]


def test_the_guide_shows_the_template_as_it_is() -> None:
    assert TEMPLATE.read_text() in guide_blocks()


def test_the_guide_names_the_action_that_this_version_releases() -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    used = [
        line.split()[-1]
        for text in guide_blocks()
        for line in text.splitlines()
        if "perftrail/perftrail@" in line
    ]
    assert set(used) == {f"perftrail/perftrail@v{version}"}


@pytest.mark.parametrize("known", ["", "41\n42\n"])
def test_the_guide_s_workflow_without_the_action_writes_or_updates_the_comment(
    tmp_path: Path, known: str
) -> None:
    [workflow] = [yaml.safe_load(text) for text in guide_blocks() if "name: performance" in text]
    [step] = [each for each in workflow["jobs"]["performance"]["steps"] if each.get("name") == "Comment"]
    (tmp_path / "gh").write_text(GH.format(python=sys.executable))
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "comment.md").write_text("<!-- perftrail compare 0 -->\ntext\n")
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_REPOSITORY": "owner/name",
        "GH_LOG": str(tmp_path / "log"),
        "GH_HOST": "github.com",
        "GH_KNOWN": known,
        "NUMBER": "7",
    }
    words = ["bash", "-eo", "pipefail", "-c", step["run"]]
    subprocess.run(words, cwd=tmp_path, env=env, check=True)
    *_, last = (json.loads(line) for line in (tmp_path / "log").read_text().splitlines())
    where = "repos/owner/name/issues/comments/41" if known else "repos/owner/name/issues/7/comments"
    assert last["words"][2:5] == ["--method", "PATCH" if known else "POST", where]
    assert last["body"].startswith("<!-- perftrail compare 0 -->")
