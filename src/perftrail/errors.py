"""Every error that perftrail raises on purpose.

::

    PerftrailError
    ├── UsageError            the command line or the request makes no sense      exit 2
    ├── StudyError            the study file has mistakes, all of them listed     exit 2
    ├── SourceError           a history cannot be read as asked                   exit 2
    │   ├── CheckoutFailed        one revision cannot be had; recorded, not fatal
    │   └── FormatError           another tool's file is not what its format says
    ├── StoreError            the results cannot be read or written               exit 1
    │   ├── StoreHeld         another perftrail is writing to them                exit 1
    │   └── StoreAway         the server that keeps them does not answer          exit 1
    ├── LauncherError         the launcher is missing, died or answered nonsense  exit 1
    ├── SandboxError          a sandbox is asked for and cannot be had here       exit 1
    ├── MachineBusy           others use the CPUs, and the study refuses that     exit 1
    ├── ClusterError          other machines cannot do the work as asked          exit 1
    │   └── MachineLeft       the machine that measured has left                  exit 1
    ├── SettingsError         this machine's settings cannot be changed           exit 1
    ├── NoticeFailed          somebody could not be told; it is tried again       exit 1
    ├── StaleBuilds           builds were found to be wrong and are made again    exit 1
    └── NoAnswer              the question could not be answered                  exit 1

A build that fails or a benchmark that crashes is no error: it is a recorded `Failure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class PerftrailError(Exception):
    """The base of all errors that perftrail raises on purpose; its text is fit for people."""

    exit_code = 1


class UsageError(PerftrailError):
    """The command line or a request to the library makes no sense."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing wrong in a study file: where, at which key, and what to do about it."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.key}: {self.message}"


class StudyError(PerftrailError):
    """A study file has mistakes; `mistakes` holds every one, in the order of the file."""

    exit_code = 2

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: (mistake.file, mistake.line)))
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class SourceError(PerftrailError):
    """A history cannot be read: no repository there, an unknown range, a tool that is missing."""

    exit_code = 2


class CheckoutFailed(SourceError):
    """One revision of a history cannot be had; whoever asked for it records that and goes on."""


class FormatError(SourceError):
    """What another tool wrote is not what its format says; the message names the place in it."""


class StoreError(PerftrailError):
    """The store of results cannot be read or written."""


class StoreHeld(StoreError):
    """Another perftrail is writing to this store; the message says which process, since when."""


class StoreAway(StoreError):
    """The server that keeps the results does not answer; `why` says so in its own words, without a remedy."""

    def __init__(self, message: str, *, why: str) -> None:
        self.why = why
        super().__init__(message)


class LauncherError(PerftrailError):
    """The launcher is missing, died, or answered something that is not its protocol."""


class SandboxError(PerftrailError):
    """A sandbox is asked for and cannot be had here; nothing was built or run without one."""


class MachineBusy(PerftrailError):
    """Others use the CPUs, and the study says to refuse measuring then; what was measured before is kept."""


class ClusterError(PerftrailError):
    """Machines of a cluster cannot be reached, or cannot do the work as it is asked of them."""


class MachineLeft(ClusterError):
    """The machine that measures has no worker any more; what it measured is kept, and is its own."""


class SettingsError(PerftrailError):
    """A setting of this machine cannot be changed, or another perftrail holds them changed."""


class NoticeFailed(PerftrailError):
    """A receiver of notices cannot be reached, or does not take what it is sent."""


class StaleBuilds(PerftrailError):
    """Builds that went on in a used tree may be wrong, as a comparison with a clean one showed.

    They were taken back: whoever used them starts over, and they are made in clean trees. `keys` names them.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        super().__init__(
            f"incremental = true does not fit this project: {len(self.keys)} builds may hold stale objects and "
            "were taken back; start again, and they are made in clean trees"
        )


class NoAnswer(PerftrailError):
    """The question could not be answered: nothing could be built, or nothing could be measured."""
