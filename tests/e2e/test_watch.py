"""`watch` on a growing branch: real commits and builds, an automatic search, one message for each receiver."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import begin, perftrail_here
from tests.fakes.receivers import Posted, free_port, mail_server, web_server
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[study]
title = "What does each commit cost?"

[source]
kind = "git"
location = "{repository}"
range = "begin.."

[benchmark.work]
command = "sh {{build}}/work"
metrics.steps = {{ pattern = 'steps ([0-9]+)' }}

[measure]
invocations = "3..12"
warmups = 0

[find]
threshold = 0.1
"""


class Branch:
    """A growing branch, whose commits print a number of steps, and a study of it."""

    def __init__(self, directory: Path) -> None:
        self.repository = Repository(directory / "repository")
        self.repository.tag("begin", self.commit(100, "begin"))
        self.study = directory / "perftrail.toml"
        self.study.write_text(STUDY.format(repository=self.repository.path))
        self.state = directory / ".perftrail" / "watch.json"

    def commit(self, steps: int, subject: str) -> str:
        files = {"work": f"echo steps {steps}\n", "NEWS": subject}
        return self.repository.commit(files, subject=subject)

    def watch(
        self, *words: str, expect: int = 0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = start("watch", str(self.study), "--once", *words, env={**os.environ, **(env or {})})
        assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def check_once(self, *words: str, **env: str) -> dict[str, Any]:
        """Run `watch --once`, and return its JSON."""
        return dict(json.loads(self.watch(*words, "--json", env=env).stdout))


@pytest.fixture
def branch(tmp_path: Path) -> Branch:
    return Branch(tmp_path)


@pytest.fixture
def posted() -> Iterator[Posted]:
    with web_server() as server:
        yield server


def test_a_change_on_the_branch_is_found_and_reported_once(branch: Branch, posted: Posted) -> None:
    hook = ("--notify", posted.address)
    first = branch.check_once(*hook)
    assert first["new"] == []
    branch.commit(100, "more words")
    slow = branch.commit(125, "\x1b[31mslow it down $(touch pwned)")
    branch.commit(125, "more words again")
    seen = branch.check_once(*hook, PERFTRAIL_WEBHOOK_SECRET="s3cret")
    assert len(seen["new"]) == 3
    [search] = seen["searches"]
    assert search["verdict"] == "found"
    [body] = posted.bodies
    signed = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert posted.headers[0]["X-Perftrail-Signature"] == f"sha256={signed}"
    message = json.loads(body)
    assert message["answer"]["changes"][0]["revisions"] == [slow]
    assert message["answer"]["changes"][0]["effect"]["value"] == pytest.approx(1.25, abs=0.01)
    assert message["better"] is False
    assert "25 % more" in message["subject"]
    branch.commit(125, "still the same")
    again = branch.check_once(*hook)
    assert (len(again["new"]), again["searches"], len(posted.bodies)) == (1, [], 1)
    branch.commit(90, "faster")
    branch.check_once(*hook)
    assert [json.loads(each)["better"] for each in posted.bodies] == [False, True]


def test_people_see_what_each_check_did(branch: Branch) -> None:
    began = branch.watch().stderr
    assert "the watch begins at " in began
    assert "no new revision" not in began
    assert "no new revision since " in branch.watch().stderr
    branch.commit(100, "more words")
    branch.commit(100, "yet more words")
    assert "no metric seems to have changed by " in branch.watch().stderr
    assert branch.watch("--quiet").stderr == ""


def test_only_a_receiver_that_missed_a_message_gets_it_again(
    branch: Branch, posted: Posted, tmp_path: Path
) -> None:
    log = tmp_path / "messages of the command"
    words = ("--notify", posted.address, "--notify", f"tee -a '{log}'")
    branch.check_once(*words)
    branch.commit(125, "slow it down")
    posted.code = 503
    done = branch.watch(*words)
    assert "1 new revision, " in done.stderr
    assert "not sent yet: webhook http://127.0.0.1:" in done.stderr
    assert "sent to command tee …: " in done.stderr
    assert "/hook" not in done.stderr  # everyone who knows the whole address may post messages
    assert posted.refused == 1
    logged = log.read_text()
    assert json.loads(logged)["metric"] == "work.steps"
    branch.watch(*words)
    assert posted.refused == 2
    posted.code = 204
    branch.watch(*words)
    branch.watch(*words)
    assert len(posted.bodies) == 1
    assert log.read_text() == logged


def test_mail_is_sent_as_the_study_declares(branch: Branch) -> None:
    with mail_server() as mails:
        text = branch.study.read_text()
        branch.study.write_text(
            f'{text}\n[watch.notify]\nmail = "team@example.org"\nsmtp = "127.0.0.1:{mails.port}"\n'
            'sender = "perftrail@example.org"\n'
        )
        branch.watch()
        branch.commit(125, "slow it down")
        branch.watch()
        branch.watch()
    [mail] = mails.mails
    assert "work.steps" in mail["Subject"] or "steps" in mail["Subject"]
    assert mail["From"] == "perftrail@example.org"


def test_watch_reports_one_change_even_if_it_is_killed_at_any_time(branch: Branch, posted: Posted) -> None:
    branch.check_once("--notify", posted.address)
    for number in range(3):
        branch.commit(100, f"words {number}")
    slow = branch.commit(125, "slow it down")
    for seconds in (0.3, 0.7):
        started = begin("watch", branch.study, "--once", "--notify", posted.address)
        try:
            started.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            started.send_signal(signal.SIGKILL)
            started.wait()
    branch.check_once("--notify", posted.address)
    messages = len(posted.bodies)  # two, if the kill came between a delivery and its record
    branch.check_once("--notify", posted.address)
    assert len(posted.bodies) == messages
    assert len({headers["X-Perftrail-Id"] for headers in posted.headers}) == 1
    for body in posted.bodies:
        assert json.loads(body)["answer"]["changes"][0]["revisions"] == [slow]


@pytest.mark.parametrize(
    ("seconds", "times"), [(0.0, 1), (0.5, 1), (60.0, 2)], ids=["accepted", "accepted slowly", "hanging"]
)
def test_watch_runs_until_it_is_stopped_and_resumes(
    branch: Branch, posted: Posted, seconds: float, times: int
) -> None:
    posted.seconds = seconds
    words = ("--every", "100ms", "--notify", posted.address)
    started = begin("watch", branch.study, *words)
    try:
        _wait_until(branch.state.exists)
        branch.commit(125, "slow it down")
        _wait_until(lambda: len(posted.bodies) == 1)
        began = time.monotonic()
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=10) == 130
        assert time.monotonic() - began < 5
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
    posted.seconds = 0.0
    branch.check_once(*words[2:])
    assert len(posted.bodies) == times


def test_new_revisions_of_a_rewritten_branch_are_measured_and_reported(
    branch: Branch, posted: Posted
) -> None:
    hook = ("--notify", posted.address)
    branch.check_once(*hook)
    branch.commit(100, "one")
    branch.check_once(*hook)
    repository = branch.repository
    repository.git("update-ref", "refs/heads/main", "begin")
    rewritten = branch.commit(300, "another one")
    assert branch.check_once(*hook)["new"] == [rewritten]
    [body] = posted.bodies
    assert json.loads(body)["answer"]["changes"][0]["revisions"] == [rewritten]


def test_two_branches_of_a_study_are_watched_separately(branch: Branch) -> None:
    main = branch.repository.git("rev-parse", "begin")
    files = {"work": "echo steps 1\n"}
    tip = branch.repository.commit(files, branch="a/side", subject="side", parents=[main])
    assert branch.check_once()["new"] == []
    began = branch.check_once("--branch", "a/side")
    assert (began["new"], began["reference"]) == ([], tip)
    fresh = branch.commit(100, "one")
    side = branch.repository.commit({"work": "echo steps 1\n", "NEWS": "x"}, branch="a/side", subject="more")
    assert branch.check_once("--branch", "a/side")["new"] == [side]
    assert branch.check_once()["new"] == [fresh]


def test_new_revisions_are_fetched_from_a_remote_repository(branch: Branch) -> None:
    text = branch.study.read_text()
    branch.study.write_text(text.replace(str(branch.repository.path), f"file://{branch.repository.path}"))
    branch.check_once()
    fresh = branch.commit(100, "new there")
    assert branch.check_once()["new"] == [fresh]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--notify", "ftp://there"), "is not a valid webhook address"),
        (("--notify", "https://me:secret@there/hook"), "is not a valid webhook address"),
        (("--notify", "mailto:nobody"), "is not a valid mail address"),
        (("--every", "soon"), '--every "soon": is not a duration'),
        (("--every", "0s"), "--every 0s"),
        (("--branch", "--all"), "--branch --all"),
        (("--branch", "no-such"), '--branch "no-such": no revision "no-such"'),
    ],
)
def test_wrong_usage_exits_2_with_the_reason(branch: Branch, words: tuple[str, ...], reason: str) -> None:
    done = perftrail_here("watch", branch.study, "--once", *words, expect=2)
    assert reason in done.stderr
    assert "secret" not in done.stderr


def test_a_branch_that_never_existed_ends_watch(branch: Branch) -> None:
    started = begin("watch", branch.study, "--branch", "mian")
    try:
        assert started.wait(timeout=20) == 2
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()


def test_an_unavailable_source_does_not_end_watch(branch: Branch, tmp_path: Path) -> None:
    stderr_file = tmp_path / "stderr"
    started = begin("watch", branch.study, "--every", "100ms", errors=stderr_file)
    try:
        _wait_until(branch.state.exists)
        away = branch.repository.path.rename(branch.repository.path.with_name("away"))
        _wait_until(lambda: "will check again later" in stderr_file.read_text())
        away.rename(branch.repository.path)
        fresh = branch.commit(100, "back again")
        _wait_until(lambda: fresh in branch.state.read_text())
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()


def test_a_command_may_have_an_address_as_argument(branch: Branch, tmp_path: Path) -> None:
    branch.check_once("--notify", f"tee '{tmp_path / 'log'}' https://there.example/x")
    # perftrail used the text as a command: it refuses an address with a blank


def test_an_unreachable_receiver_does_not_stop_watch(branch: Branch) -> None:
    words = ("--notify", f"http://127.0.0.1:{free_port()}/hook")
    branch.check_once(*words)
    branch.commit(125, "slow it down")
    assert "cannot be reached" in branch.watch(*words).stderr


def _wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.01)
