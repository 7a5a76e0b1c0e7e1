"""The table [watch]: its values, and invalid receivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import StudyError
from perftrail.studyfile import load

STUDY = """\
[source]
kind = "git"
location = "."
[benchmark.work]
command = "true"
"""


def test_watches_and_their_receivers_are_read(tmp_path: Path) -> None:
    watch = load_watch(
        tmp_path,
        '[watch]\nbranch = "main"\nevery = "90s"\n[watch.notify]\nwebhook = "https://there.example/hook?x=1"\n'
        'command = ["page-team --now"]\nmail = "team@example.org"\nsmtp = "mail.example.org:587"\n',
    )
    assert watch == (
        "main",
        90.0,
        ("https://there.example/hook?x=1",),
        ("page-team --now",),
        ("team@example.org",),
        "mail.example.org:587",
    )


def load_watch(directory: Path, text: str) -> tuple[object, ...]:
    file = directory / "perftrail.toml"
    file.write_text(STUDY + text)
    watch = load(str(file)).watch
    notify = watch.notify
    return (watch.branch, watch.every_seconds, notify.webhook, notify.command, notify.mail, notify.smtp)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('webhook = "ftp://there"', "watch.notify.webhook"),
        ('webhook = "https://me:secret@there/"', "without a user or a password"),
        ('mail = "nobody"', "watch.notify.mail"),
        ('mail = "a@b, c@d"', "watch.notify.mail"),
        ('command = "say \'what"', "cannot be split"),
        ('command = " "', "names no command"),
        ('smtp = "there"', "HOST:PORT"),
        ('smtp = "there:65536"', "HOST:PORT"),
        ('sender = "a\\nb"', "control characters"),
        ('password = "x"', "unknown key"),
    ],
)
def test_whom_nothing_can_be_sent_to_is_a_mistake_of_the_file(
    tmp_path: Path, line: str, expected: str
) -> None:
    with pytest.raises(StudyError, match=expected):
        load_watch(tmp_path, f"[watch.notify]\n{line}\n")


@pytest.mark.parametrize("branch", ["--all", "a..b", ""])
def test_what_is_no_branch_is_a_mistake_of_the_file(tmp_path: Path, branch: str) -> None:
    with pytest.raises(StudyError, match=r"watch\.branch"):
        load_watch(tmp_path, f'[watch]\nbranch = "{branch}"\n')
