"""Whether builds and runs of strangers' code can be kept in a sandbox here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.workflows.diagnosis.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.workflows.diagnosis.finding import Signs


def sandbox(signs: Signs) -> Iterator[Finding]:
    """The sandbox: whether one can be made, and whether it limits memory."""
    if signs.no_sandbox is None:
        return
    if signs.no_sandbox:
        told, _, remedy = signs.no_sandbox.partition("\n")
        yield Finding(
            name="sandbox",
            grade="unknown",
            here=told.removeprefix("sandbox — "),
            cost="no figure suffers; but what --sandbox would contain can only be run with all your rights",
            source="measured",
            remedy=remedy,
        )
    elif signs.cgroups.get("memory") is None:
        yield Finding(
            name="sandbox",
            grade="fine",
            here="can be made; it limits memory for each process only, and where a study says sandbox.memory",
        )
    else:
        yield Finding(name="sandbox", grade="fine", here="can be made, with its memory and processes limited")
