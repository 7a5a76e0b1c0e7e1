"""Access control: which clients may read and write, by tokens, login sessions, and users that a proxy names."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from perftrail.errors import UsageError
from perftrail.file_tree import open_to_read

Role = Literal["read", "write"]

ROLES: tuple[Role, ...] = get_args(Role)

VARIABLE = "PERFTRAIL_TOKEN"

SHORTEST = 20
"""Minimum length of a token in characters: a shorter one can be guessed."""

LARGEST_BYTES = 1 << 20
"""Size of the largest file of tokens."""

SESSION_SECONDS = 12 * 3600.0
MOST_SESSIONS = 2000

LOOPBACK = frozenset({"127.0.0.1", "::1"})
"""Addresses that only this machine's users can use."""


class Tokens:
    """The accepted tokens, stored as digests, and the role of each."""

    def __init__(self, roles: dict[str, Role]) -> None:
        self._digests = [(_digest(token), role) for token, role in roles.items()]

    def role(self, token: str) -> Role | None:
        """Return the role of a token, `None` if it is unknown. Takes the same time for all tokens."""
        own, found = _digest(token), None
        for digest, role in self._digests:
            if hmac.compare_digest(digest, own):
                found = role
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def read_tokens(file: str | None) -> Tokens | None:
    """Return the tokens of a file, or the token in `PERFTRAIL_TOKEN`; `None` without tokens.

    Each line is ``read TOKEN`` or ``write TOKEN``; a line with only a token means write. Raises
    `UsageError` for a file that others can read, and for invalid tokens.
    """
    if file is None:
        token = os.environ.get(VARIABLE, "")
        return Tokens(dict([_parsed(token, VARIABLE)])) if token else None
    try:
        with open_to_read(Path(file)) as opened:
            mode, content = os.fstat(opened.fileno()).st_mode, opened.read(LARGEST_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--token-file {file}: cannot be read: {error}; name a file of lines as read TOKEN"
        ) from error
    if mode & 0o077:
        raise UsageError(f"--token-file {file}: other users may read it; run: chmod 600 {file}")
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"--token-file {file}: larger than {LARGEST_BYTES >> 10} KiB")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    found = [_parsed(line, f"{file}:{number}") for number, line in lines if line and not line.startswith("#")]
    if not found:
        raise UsageError(
            f"--token-file {file}: the file has no token; write one per line, as read TOKEN or write TOKEN"
        )
    return Tokens(dict(found))


def _parsed(line: str, where: str) -> tuple[str, Role]:
    first, _, rest = line.partition(" ")
    token, role = (rest.strip(), first) if rest else (line, "write")
    known = next((each for each in ROLES if each == role), None)
    if known is None or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"{where}: not a valid token; write read TOKEN or write TOKEN, in letters and digits"
        )
    if len(token) < SHORTEST:
        raise UsageError(
            f"{where}: a token of {len(token)} characters can be guessed; use {SHORTEST} or more, for example from "
            "python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token, known


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The access rules. Without tokens and a trusted header, only this machine is served, without a login.

    `header` is a header in which a proxy names its user. Only requests from `proxies` are trusted with this header, and
    with the address of their client. `writers` are the users who may write. `hosts` are the names of this server in
    requests, in addition to its IP addresses.
    """

    tokens: Tokens | None = None
    header: str = ""
    proxies: frozenset[str] = frozenset()
    writers: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset({"localhost"})

    @property
    def open(self) -> bool:
        """Whether no login is required."""
        return self.tokens is None and not self.header


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The client of a request.

    `role` is `None` without a valid login. `session_id` is the one in the cookie. `program`: the client sent a bearer
    token instead of a cookie.
    """

    role: Role | None
    name: str = ""
    session_id: str = ""
    program: bool = False

    @property
    def may_write(self) -> bool:
        """Whether the client may write."""
        return self.role == "write"


@dataclass(slots=True)
class LoginSessions:
    """Logged-in browsers, by the secret name in their cookie, with the role of their token."""

    _roles: dict[str, tuple[Role, float]] = field(default_factory=dict)
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def begin(self, role: Role | None) -> str:
        """Start a session with a new name at each login; return its name."""
        name = secrets.token_urlsafe(32)
        if role is not None:
            self._forget()
            self._roles[name] = (role, time.monotonic() + SESSION_SECONDS)
        return name

    def role(self, name: str) -> Role | None:
        """Return the role of a session, `None` without a login."""
        role, until = self._roles.get(name, (None, 0.0))
        return role if time.monotonic() < until else None

    def end(self, name: str) -> None:
        """End a session."""
        self._roles.pop(name, None)

    def form_token(self, name: str) -> str:
        """Return the secret token that every form of a session must contain."""
        return hmac.new(self._secret, name.encode(), hashlib.sha256).hexdigest()

    def is_form_token(self, name: str, token: str) -> bool:
        """Return whether a form has the session's token. Takes the same time for all values."""
        return bool(name) and hmac.compare_digest(
            self.form_token(name).encode(), token.encode("utf-8", "replace")
        )

    def _forget(self) -> None:
        at = time.monotonic()
        kept = {name: each for name, each in self._roles.items() if each[1] > at}
        newest = sorted(kept.items(), key=lambda item: item[1][1])[-(MOST_SESSIONS - 1) :]
        self._roles = dict(newest)
