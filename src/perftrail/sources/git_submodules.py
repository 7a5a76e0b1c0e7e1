"""Reads which submodules a commit has: where each lies, at which commit, and from where it is said to come."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed
from perftrail.sources.git_objects import find_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.sources.git_mirror import Mirror

_FILE = ".gitmodules"
_SETTING = re.compile(r"submodule\.(?P<name>.*)\.(?P<key>path|url)\n(?P<value>.*)", re.DOTALL)
_GITLINK = "160000 commit "


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    """A submodule in a commit. `address` is as the repository has it, empty where it says nothing of it."""

    path: str
    commit: str
    name: str
    address: str


def submodules(mirror: Mirror, commit: str) -> list[Submodule]:
    """Give the submodules in a commit's tree; what its ``.gitmodules`` names besides is no part of it.

    Raises `CheckoutFailed` when that file cannot be read.
    """
    (file,) = find_objects(mirror.git, mirror.ready(), [f"{commit}:{_FILE}"])
    if file is None or file.kind != "blob":
        return []
    answer = mirror.git.ask("ls-tree", "-r", "-z", "--full-tree", commit, repository=mirror.path)
    if answer.failed:
        raise CheckoutFailed(f"git cannot list {commit}: {answer.why}")
    links = [entry.partition("\t") for entry in answer.fields() if entry.startswith(_GITLINK)]
    if not links:
        return []
    described = _described(mirror, commit)
    return [
        Submodule(
            path=path,
            commit=link.removeprefix(_GITLINK).strip(),
            name=described[path].get("name", "") if path in described else "",
            address=described[path].get("url", "") if path in described else "",
        )
        for link, _, path in links
    ]


def own_copies(mirror: Mirror, submodule: Submodule) -> Iterator[str]:
    """Give the address of the user's own clone of a submodule, if there is one in that of the repository.

    It is given as an address, not as a path, so that what the user has checked out there plays no part.
    """
    home = mirror.own_copy
    parts = PurePosixPath(submodule.name).parts
    if home is None or not parts or ".." in parts or submodule.name.startswith("/"):
        return
    copy = home / "modules" / submodule.name
    if (copy / "HEAD").is_file():
        yield copy.as_uri()


def _described(mirror: Mirror, commit: str) -> Mapping[str, Mapping[str, str]]:
    """What ``.gitmodules`` says of each path: ``name`` and ``url``."""
    answer = mirror.git.ask(
        "config", "-z", "--blob", f"{commit}:{_FILE}", "--get-regexp", r"^submodule\..*\.(path|url)$",
        repository=mirror.path,
    )  # fmt: skip
    if answer.failed and answer.errors.strip():
        raise CheckoutFailed(f"{_FILE} of {commit} cannot be read: {answer.why}")
    found: dict[str, dict[str, str]] = {}
    for setting in map(_SETTING.fullmatch, answer.fields()):
        if setting is not None:
            found.setdefault(setting["name"], {"name": setting["name"]})[setting["key"]] = setting["value"]
    return {each["path"]: each for each in found.values() if "path" in each}
