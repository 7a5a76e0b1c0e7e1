"""Rules for `[sandbox]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.wording import quoted
from perftrail.studyfile.rules.texts import control_wrong

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints


def check_sandbox(study: Study, complaints: Complaints) -> None:
    """Complain about a sandbox that is opened without a reason, or so that nothing is left of it."""
    sandbox = study.sandbox
    for path in sandbox.readable:
        if wrong := _path_wrong(path):
            complaints.add(("sandbox", "readable"), wrong)
    if sandbox.why.strip():
        return
    for key, opened in (("network", sandbox.network != "none"), ("readable", bool(sandbox.readable))):
        if opened:
            complaints.add(("sandbox", key), "opens the sandbox: say in sandbox.why what for")


def _path_wrong(path: str) -> str | None:
    if not path.startswith(("/", "~/")):
        return f"{quoted(path)}: write ~/PATH or /PATH"
    parts = path.split("/")
    if ".." in parts:
        return f'{quoted(path)}: write it without ".."'
    if not any(part not in {"", "."} for part in parts[1:]):
        return f"{quoted(path)} would show everything; name what is needed in it"
    return control_wrong(path)
