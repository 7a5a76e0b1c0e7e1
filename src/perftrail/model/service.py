"""Services that run while a benchmark's command is measured, and where processes run: CPUs, niceness, NUMA nodes."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from perftrail.model.field import ENVIRONMENT, Key

# cattrs and the schema read the annotations at run time, so these imports must not be in TYPE_CHECKING.

PortValue = int | float | str
"""A TCP port, or a text with placeholders."""

CPUS = Key('The CPUs on which its processes run, for example "0" or "0,2-3". Default: all.', form="numbers")
NICE = Key("Niceness of its processes; a negative one needs privileges.", above=-21, below=20)
NUMA = Key(
    'The NUMA nodes whose memory, and whose CPUs unless cpus is set, its processes use, for example "0". '
    "Default: all.",
    form="numbers",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a process runs: CPUs, niceness and NUMA nodes; `None` does not change a setting."""

    cpus: tuple[int, ...] | None = None
    nice: int | None = None
    numa: tuple[int, ...] | None = None

    def content(self) -> list[object]:
        """Return the settings for a content key; empty without any."""
        chosen = {"cpus": self.cpus, "nice": self.nice, "numa": self.numa}
        return [[name, value] for name, value in chosen.items() if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """How perftrail notices that a service is ready: exactly one of these keys.

    Without any, perftrail waits until the service accepts connections at its ``{port}``.
    """

    line: Annotated[str, Key("Regular expression for a line of the service's output.")] = ""
    port: Annotated[
        PortValue, Key('TCP port of this machine that accepts connections: a number, or "{port}".')
    ] = ""
    command: Annotated[str, Key("Shell line that succeeds when the service is ready.")] = ""

    @property
    def chosen(self) -> tuple[str, ...]:
        """The keys that are set."""
        return tuple(name for name in ("line", "port", "command") if getattr(self, name) != "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A server that runs while a benchmark's command is measured, in the foreground, until perftrail stops it.

    Each build and each benchmark has its own, with its own {data} directory and {port}.
    """

    command: Annotated[
        str,
        Key(
            "The command that starts the service, split into words; it must not go into the background.",
            stand_in="-",
        ),
    ]
    shell: Annotated[bool, Key("true: the command is one shell line; let it exec the service.")] = False
    setup: Annotated[
        tuple[str, ...],
        Key("Shell lines (sh -eu) that fill {data}, before the first start with this directory."),
    ] = ()
    ready: Annotated[Readiness, Key("How perftrail notices that the service is ready.")] = field(
        default_factory=Readiness
    )
    timeout_seconds: Annotated[
        float, Key("Longest time until the service is ready.", name="timeout", form="duration", above=0)
    ] = 60.0
    stop: Annotated[
        str, Key("Signal, or shell line, that stops the service. After ten seconds perftrail kills it.")
    ] = "SIGTERM"
    directory: Annotated[str, Key("Working directory of the service.")] = "{data}"
    env: Annotated[
        Mapping[str, str], Key("Variables added to the service's environment.", names=ENVIRONMENT)
    ] = field(default_factory=dict)
    restart: Annotated[
        Literal["never", "each"],
        Key(
            "never: the service runs over the invocations of a build. each: every invocation starts it again."
        ),
    ] = "never"
    cpus: Annotated[tuple[int, ...] | None, CPUS] = None
    nice: Annotated[int | None, NICE] = None
    numa: Annotated[tuple[int, ...] | None, NUMA] = None

    @property
    def placement(self) -> Placement:
        """Where its processes run."""
        return Placement(cpus=self.cpus, nice=self.nice, numa=self.numa)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text with placeholders."""
        ready = (str(self.ready.port), self.ready.command)
        own = (self.command, self.directory, self.stop, *self.setup, *self.env.values(), *ready)
        return tuple(text for text in own if text)

    @property
    def readiness(self) -> Readiness:
        """How perftrail notices that it is ready; its port, if the study does not choose."""
        return self.ready if self.ready.chosen else Readiness(port="{port}")

    def content(self) -> list[object]:
        """Return everything that can affect samples, for a content key."""
        ready = self.readiness
        return [
            self.command,
            self.shell,
            list(self.setup),
            [ready.line, str(ready.port), ready.command],
            self.directory,
            self.stop,
            dict(self.env),
            self.restart,
            self.placement.content(),
        ]


_SIGNAL = re.compile(r"(?:SIG)?([A-Z][A-Z0-9+-]*)")


def stop_signal(stop: str) -> int | None:
    """Return the number of the signal that `stop` names; `None` if it is a shell line.

    Raises `ValueError` for a name in capitals that is not a signal.

    >>> stop_signal("SIGINT") == stop_signal("INT") == signal.SIGINT, stop_signal("pg_ctl stop")
    (True, None)
    """
    found = _SIGNAL.fullmatch(stop)
    if found is None:
        return None
    try:
        return int(signal.Signals[f"SIG{found[1]}"])
    except KeyError:
        raise ValueError("is not a signal; write, for example, SIGTERM, or a shell line") from None
