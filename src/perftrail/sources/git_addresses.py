"""Where a submodule is to be had from: its address as a repository wrote it, which may be hostile."""

from __future__ import annotations

import re

from perftrail.errors import SourceError
from perftrail.model.wording import quoted

_REMOTE = re.compile(r"(?P<root>(?:https?|ssh|git)://[^/\s]+)(?:/(?P<path>.*))?")
_SHORT_SSH = re.compile(r"(?P<root>[^/:\s]+:)(?!:|//)(?P<path>.*)")
_HERE = re.compile(r"(?P<root>file://|)/(?P<path>.*)")
_OPTION = re.compile(r"(?:[a-z]+://)?(?:[^/@]*@)?-")


def is_here(address: str) -> bool:
    """Whether an address is a place on this machine."""
    return _HERE.fullmatch(address) is not None


def submodule_address(written: str, *, parent: str) -> str:
    """Give the address of a submodule, resolved against that of the repository it is in.

    Raises `SourceError` for whatever would have git start a program, take it for an option, or read this
    machine's files on the word of a repository from elsewhere.

    >>> submodule_address("../lib.git", parent="https://host.invalid/a/app.git")
    'https://host.invalid/a/lib.git'
    >>> submodule_address("../lib", parent="git@host.invalid:a/app")
    'git@host.invalid:a/lib'
    """
    if written.startswith(("./", "../")):
        return _below(parent, written)
    refuse_hostile(written)
    if is_here(written) and not is_here(parent):
        raise SourceError(
            f"its address {quoted(written)} is a path of this machine, but the repository is from elsewhere"
        )
    return written


def refuse_hostile(address: str) -> None:
    """Raise `SourceError` unless an address is a path of this machine or one that git may be given."""
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in address):
        raise SourceError(f"its address {quoted(address)} has control characters")
    if _OPTION.match(address):
        raise SourceError(f"its address {quoted(address)} would be an option, not an address")
    if not any(form.fullmatch(address) for form in (_HERE, _REMOTE, _SHORT_SSH)):
        raise SourceError(
            f"its address {quoted(address)} is none that git may be given; https:// and ssh:// are"
        )


def _below(parent: str, written: str) -> str:
    found = _HERE.fullmatch(parent) or _REMOTE.fullmatch(parent) or _SHORT_SSH.fullmatch(parent)
    if found is None:
        raise SourceError(
            f"its address {quoted(written)} is relative to {quoted(parent)}, which is no address"
        )
    parts = [part for part in (found["path"] or "").split("/") if part]
    for part in written.split("/"):
        if part == ".." and not parts:
            raise SourceError(f"its address {quoted(written)} leads out of {quoted(found['root'] or '/')}")
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    from_home = found.re is _SHORT_SSH and not found["path"].startswith("/")
    return f"{found['root']}{'' if from_home else '/'}{'/'.join(parts)}"
