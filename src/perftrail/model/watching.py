"""How a branch is watched and who is told, as the study file says it."""

# The annotations are read when the program runs (cattrs, the schema), so their names are imported for real.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from perftrail.model.key import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Receivers:
    """Who is told of a change. Passwords and secrets are no part of it: they come from the environment."""

    webhook: Annotated[
        tuple[str, ...],
        Key("Addresses that JSON is posted to; PERFTRAIL_WEBHOOK_SECRET signs it.", form="texts"),
    ] = ()
    command: Annotated[
        tuple[str, ...],
        Key("Commands that get the JSON on their standard input; words, no shell.", form="texts"),
    ] = ()
    mail: Annotated[tuple[str, ...], Key("Addresses that a mail is sent to.", form="texts")] = ()
    smtp: Annotated[
        str,
        Key(
            "The mail server, HOST:PORT; elsewhere than on this machine it must offer STARTTLS, or be at port 465."
        ),
    ] = "localhost:25"
    sender: Annotated[str, Key("Who mails are from.")] = "perftrail@localhost"
    user: Annotated[str, Key("The mail server's user; PERFTRAIL_SMTP_PASSWORD is the password.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPolicy:
    """What `watch` follows and how often it looks."""

    branch: Annotated[
        str | None, Key("The branch that is followed; without it, what the source's range ends at if open.")
    ] = None
    every_seconds: Annotated[
        float, Key("How often to look for new revisions.", name="every", form="duration", above=0)
    ] = 300.0
    notify: Annotated[Receivers, Key("Who is told of a change.")] = field(default_factory=Receivers)
