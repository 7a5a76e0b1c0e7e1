"""Rules for watching: whom a notice can be sent to."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from perftrail.studyfile.rules.texts import control_wrong, revision_wrong

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints

_WEBHOOK = re.compile(r"https?://[^@\s/?#]+([/?#]\S*)?")
_MAIL = re.compile(r"[^@\s<>,;:\"]+@[^@\s<>,;:\"]+")
_SERVER = re.compile(r"[^@\s/]+:[0-9]{1,5}")
LAST_PORT = 65535


def check_watch(study: Study, complaints: Complaints) -> None:
    """Complain about a branch that cannot be one, and about receivers that nothing can be sent to."""
    branch, notify = study.watch.branch, study.watch.notify
    if branch is not None and (wrong := revision_wrong(branch)):
        complaints.add(("watch", "branch"), wrong)
    kinds = {"webhook": notify.webhook, "command": notify.command, "mail": notify.mail}
    for kind, receivers in kinds.items():
        for receiver in receivers:
            if wrong := receiver_wrong(kind, receiver):
                complaints.add(("watch", "notify", kind), wrong)
    if _SERVER.fullmatch(notify.smtp) is None or not 0 < int(notify.smtp.rpartition(":")[2]) <= LAST_PORT:
        complaints.add(("watch", "notify", "smtp"), "is no mail server; write HOST:PORT")
    for name, text in (("sender", notify.sender), ("user", notify.user)):
        if wrong := control_wrong(text):
            complaints.add(("watch", "notify", name), wrong)


def receiver_wrong(kind: str, receiver: str) -> str:
    """Say what is wrong with a receiver of a kind, nothing when it can be sent to."""
    if wrong := control_wrong(receiver):
        return wrong
    if kind == "webhook" and _WEBHOOK.fullmatch(receiver) is None:
        return "is no address that can be posted to; write https://HOST/PATH, without a user or a password"
    if kind == "mail" and _MAIL.fullmatch(receiver) is None:
        return "is no mail address; write NAME@HOST"
    if kind == "command":
        try:
            words = shlex.split(receiver)
        except ValueError as error:
            return f"cannot be split into words: {error}"
        return "" if words else "names no command"
    return ""
