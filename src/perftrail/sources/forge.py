"""Addresses of commits on the web: GitHub, GitLab, Gitea, Bitbucket, sourcehut, Gerrit, cgit and Fossil.

They are computed from the address of a repository, or of a local repository's remote `origin`. Nothing is requested.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.source import Source
    from perftrail.model.subject import Revision

_HOST = r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9-]*\.)+[A-Za-z]{2,})"
_PATH = r"(?P<path>[\w.~+-]+(?:/[\w.~+-]+)*)/?"
_REMOTES = (
    re.compile(rf"(?:https?|git|ssh|git\+ssh)://(?:[^@/]*@)?{_HOST}(?::\d+)?/{_PATH}", re.ASCII),
    re.compile(rf"(?:[\w.-]+@){_HOST}:{_PATH}", re.ASCII),
)
"""Addresses of remotes, and the form ``git@host:path``. User names, passwords and ports are left out."""

_FORGES = (
    (
        r"github\.com|codeberg\.org|gitea\.com|(?:gitea|forgejo)\..*|git\.sr\.ht",
        "https://{host}/{name}/commit/{id}",
    ),
    (
        r"gitlab\.com|gitlab\..*|.*\.gitlab\..*|salsa\.debian\.org|framagit\.org",
        "https://{host}/{name}/-/commit/{id}",
    ),
    (r"bitbucket\.org", "https://{host}/{name}/commits/{id}"),
    (r".*\.googlesource\.com", "https://{host}/{name}/+/{id}"),
    (r"git\.kernel\.org|cgit\..*", "https://{host}/{path}/commit/?id={id}"),
)
"""Hosts, and the address of a commit there; ``{name}`` is the path without ``.git``."""

_ORIGIN = re.compile(r'^\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)\s*$', re.MULTILINE)


def commit_addresses(source: Source, revisions: Sequence[Revision]) -> dict[str, str]:
    """Return the addresses of revisions by short id; empty if the source has none or its forge is unknown.

    Reads the configuration of a local git repository.
    """
    if source.kind not in ("git", "fossil"):
        return {}
    local = Path(source.location)
    remote = origin(local) if source.kind == "git" and local.is_dir() else source.location
    page = fossil_address if source.kind == "fossil" else git_address
    found = ((each.short, page(remote, each.id)) for each in revisions)
    return {short: address for short, address in found if address}


def git_address(remote: str, commit: str) -> str:
    """Return the address of a commit on the forge of a remote; empty if the forge is unknown.

    >>> git_address("git@github.com:curl/curl.git", "3f9c2ab41d")
    'https://github.com/curl/curl/commit/3f9c2ab41d'
    >>> git_address("/srv/git/curl.git", "3f9c2ab41d")
    ''
    """
    found = next((match for pattern in _REMOTES if (match := pattern.fullmatch(remote))), None)
    if found is None or ".." in found["path"].split("/"):
        return ""
    host, path = found["host"].lower(), found["path"]
    form = next((form for hosts, form in _FORGES if re.fullmatch(hosts, host)), "")
    return form.format(host=host, path=path, name=path.removesuffix(".git"), id=quote(commit, safe=""))


def fossil_address(location: str, check_in: str) -> str:
    """Return the address of a check-in on the server of a Fossil repository; empty for a file.

    >>> fossil_address("https://core.tcl-lang.org/tcl", "3f9c2ab41d")
    'https://core.tcl-lang.org/tcl/info/3f9c2ab41d'
    """
    found = _REMOTES[0].fullmatch(location)
    if found is None or not location.startswith("http") or ".." in found["path"].split("/"):
        return ""
    return f"https://{found['host'].lower()}/{found['path']}/info/{quote(check_in, safe='')}"


def origin(repository: Path) -> str:
    """Return the address of the remote `origin` of a local git repository; empty without one."""
    for file in (repository / ".git" / "config", repository / "config"):
        with suppress(OSError, UnicodeDecodeError):
            found = _ORIGIN.search(file.read_text(encoding="utf-8"))
            if found is not None:
                return found[1]
    return ""
