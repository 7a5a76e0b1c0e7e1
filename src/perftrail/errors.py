"""Exceptions of perftrail: one tree, each with its exit code.

::

    PerftrailError
    ├── UsageError            the command line or the request is not valid        exit 2
    ├── StudyError            the study file has mistakes; all are listed         exit 2
    ├── SourceError           a history cannot be read                            exit 2
    │   ├── CheckoutFailed        one revision is missing; recorded, not fatal
    │   └── FormatError           another tool's file does not match its format
    ├── StoreError            the store cannot be read or written                 exit 1
    │   ├── StoreLocked       another perftrail process writes to the store       exit 1
    │   └── StoreUnreachable  the store's server does not answer                  exit 1
    ├── LauncherError         the launcher is missing, died or broke its protocol exit 1
    ├── SandboxError          the requested sandbox is not available              exit 1
    ├── MachineBusy           the machine is busy, and the study refuses that     exit 1
    ├── ClusterError          machines of a cluster cannot do the work            exit 1
    │   └── MachineLeft       the measuring machine left the cluster              exit 1
    ├── SettingsError         this machine's settings cannot be changed           exit 1
    ├── NoticeFailed          a receiver cannot be notified; it is retried        exit 1
    ├── InputChanged          a file changed while perftrail used it              exit 1
    ├── StaleBuilds           wrong builds were found and are built again         exit 1
    └── NoAnswer              the question could not be answered                  exit 1

A failed build or a crashed benchmark is not an exception: it is a recorded `Failure`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class PerftrailError(Exception):
    """Base class of all deliberate errors; the message is written for people."""

    exit_code = 1


class UsageError(PerftrailError):
    """The command line or a request to the library is not valid."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake in a study file: the line, the key, and what to do about it. Line 0: the file as a whole."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: {self.key}" if self.line else self.file
        return f"{where}: {self.message}"


class StudyError(PerftrailError):
    """A study file has mistakes; `mistakes` lists all of them, in the order of the file."""

    exit_code = 2

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: (mistake.file, mistake.line)))
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class SourceError(PerftrailError):
    """A history cannot be read: for example a missing repository, an unknown range, or a missing tool.

    `key` is the study's key that causes it, if that is known. `range` is the range of a command that causes it.
    """

    exit_code = 2
    key: tuple[str, ...] = ()
    range: str = ""


class CheckoutFailed(SourceError):
    """One revision of a history is not available; the caller records this and continues."""


class FormatError(SourceError):
    """Another tool's output does not match its format; the message names the position."""


class StoreError(PerftrailError):
    """The store of results cannot be read or written."""


class StoreLocked(StoreError):
    """Another perftrail process writes to this store; the message names the process and its start."""


class StoreUnreachable(StoreError):
    """The server of the store does not answer; `why` is its own message, without a remedy."""

    def __init__(self, message: str, *, why: str) -> None:
        self.why = why
        super().__init__(message)


class LauncherError(PerftrailError):
    """The launcher is missing, died, or sent something outside its protocol."""


class SandboxError(PerftrailError):
    """The requested sandbox is not available here; nothing was built or run without it."""


class MachineBusy(PerftrailError):
    """Other processes use the CPUs, and the study refuses to measure then; earlier samples are stored."""


class ClusterError(PerftrailError):
    """Machines of a cluster are not reachable, or cannot do the work."""


class MachineLeft(ClusterError):
    """The measuring machine has no worker any more; its samples are stored under its own id."""


class SettingsError(PerftrailError):
    """A setting of this machine cannot be changed, or another perftrail process has changed it."""


class NoticeFailed(PerftrailError):
    """A receiver of notices is not reachable, or rejects the notice."""


REPEAT = (
    "repeat the command to use the present content. If the study itself writes this file, let it write to {build}, "
    "{out}, {data} or its working directory"
)
"""What to do about a changed input."""


class InputChanged(PerftrailError):
    """A file that a recipe or a benchmark names changed since its content became part of a key."""


class StaleBuilds(PerftrailError):
    """Incremental builds may be wrong: a comparison with a clean build differed.

    perftrail discarded them. Callers start again, and the builds then use clean trees. `keys` names the builds.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        super().__init__(
            f"build.incremental = true is not safe for this project: {len(self.keys)} builds may contain stale objects "
            "and were discarded; start again, and perftrail builds them in clean trees"
        )

    @property
    def repeats(self) -> str:
        """What a command that starts again by itself reports."""
        return (
            f"{len(self.keys)} builds may contain stale objects, because they differ from a clean build: perftrail "
            "repeats them in clean trees; samples of builds that do not change stay valid"
        )


class ChangedEnvironment(StaleBuilds):
    """A build of an earlier session has other outputs now, with equal inputs. Builds now have other keys.

    `since` is the day of the earlier build; empty if unknown.
    """

    def __init__(self, keys: Sequence[str], *, since: str) -> None:
        super().__init__(keys)
        self.since = since
        self.args = (f"{self.repeats}; start again",)

    @property
    def repeats(self) -> str:
        """What a command that starts again by itself reports."""
        return (
            f"the environment of builds changed since {self.since or 'an earlier session'}, for example a compiler, a "
            "header or a file that a build copies: earlier builds are not used any more"
        )


NOTHING_MEASURED = "no samples yet; measure with: perftrail run, or search with: perftrail find"
"""Message of `NoAnswer` for a study without samples."""


class NoAnswer(PerftrailError):
    """The question could not be answered: every build failed, or there are no samples."""


MACHINE_ERRORS = {
    errno.ENOSPC: "free disk space",
    errno.EDQUOT: "free disk space, or raise your quota",
    errno.EIO: "check the disk",
    errno.EROFS: "make the file system writable",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close programs with many open files",
    errno.ENOMEM: "free memory",
    **dict.fromkeys(
        (errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.ENXIO),
        "remove or rename what perftrail did not create there",
    ),
}
"""Errors of the machine, not of perftrail, with their remedy. Any command may raise them at any file."""
