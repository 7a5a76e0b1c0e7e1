"""Build one subject and report the outcome, or prepare its tree for an interactive shell."""

from __future__ import annotations

import shlex
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import UsageError
from perftrail.file_tree import remove_tree, try_exclusive_lock
from perftrail.measure.events import BuildFinished
from perftrail.measure.failure_groups import study_line
from perftrail.model.build import Built, Failure, Stage
from perftrail.model.recipe import PLAIN
from perftrail.model.subject import Subject
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.verbs.backport.patch import find_revision

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from perftrail.measure.events import Event
    from perftrail.measure.session import BuildView, Session
    from perftrail.model.build import ManualBuild, Recipe
    from perftrail.model.study import Study

MOST_SHELLS = 64
"""Maximum number of shells on one study, each in a separate directory."""

STEPS = "steps.sh"
"""Name of the script in the tree's parent directory that runs the whole recipe."""


class BuildFailureJson(TypedDict):
    """Why a subject failed to build."""

    stage: Stage
    message: str


class BuildReportJson(TypedDict):
    """One build."""

    revision: str
    label: str
    variant: str
    succeeded: Annotated[bool, "whether the build succeeded"]
    known: Annotated[bool, "whether it was built earlier"]
    seconds: float
    directory: str | None
    artefact: Annotated[str | None, "digest of its content"]
    outputs: list[str]
    log: str
    failure: BuildFailureJson | None
    skipped: Annotated[str | None, "why the study skips the revision"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """Outcome of building one subject. `known`: the outcome was stored; nothing was built.

    `skipped` is the reason why all other commands skip the revision; empty if they do not. `study_line` is the line of
    the study that a failure is about, for example ``perftrail.toml:7 (build.steps)``; empty for a successful build.
    """

    subject: Subject
    recipe: Recipe
    outcome: Built | Failure
    known: bool
    skipped: str
    study_line: str = ""

    def as_json(self) -> BuildReportJson:
        """Return the report as `build --json` prints it."""
        built = self.outcome if isinstance(self.outcome, Built) else None
        failure = self.outcome if isinstance(self.outcome, Failure) else None
        failed: BuildFailureJson | None = None
        if failure is not None:
            failed = {"stage": failure.stage, "message": failure.message}
        return {
            "revision": self.subject.revision.id,
            "label": self.subject.revision.label,
            "variant": self.subject.variant,
            "succeeded": built is not None,
            "known": self.known,
            "seconds": self.outcome.seconds,
            "directory": built.directory if built else None,
            "artefact": built.artefact if built else None,
            "outputs": list(self.recipe.outputs),
            "log": self.outcome.log,
            "failure": failed,
            "skipped": self.skipped or None,
        }


def build(session: Session, name: str, *, variant: str | None) -> Generator[Event, None, BuildReport]:
    """Build a subject, also one that the study skips; yield events and return the report."""
    subject_builder = session.subject_builder
    subject = subject_named(session, name, variant=variant)
    skipped_revisions = subject_builder.skipped_revisions((subject.revision,))
    known = False
    events = subject_builder.build_even_skipped(subject)
    while True:
        try:
            event = next(events)
        except StopIteration as stop:
            outcome: Built | Failure = stop.value
            break
        if isinstance(event, BuildFinished):
            known = event.known
        else:
            yield event
    eras = subject_builder.build_inputs.eras_of(subject)
    return BuildReport(
        subject=subject,
        recipe=subject_builder.build_inputs.recipe(subject),
        outcome=outcome,
        known=known,
        skipped=skipped_revisions[0].reason if skipped_revisions else "",
        study_line=study_line(outcome, session.study, None, subject, eras)
        if isinstance(outcome, Failure)
        else "",
    )


def subject_named(view: BuildView, name: str, *, variant: str | None) -> Subject:
    """Return the subject with a name; raises `UsageError` or `SourceError` if there is none."""
    variant = _variant(view.study, variant)
    return Subject(revision=find_revision(view.study, view.source, name), variant=variant)


@contextmanager
def prepared_tree(view: BuildView, subject: Subject, *, results: Path) -> Iterator[ManualBuild]:
    """Prepare a subject's tree in a separate directory, which is removed at the end; stored builds do not change.

    Leftovers of killed processes are removed first.
    """
    with _shell_directory(results.absolute()) as home:
        prepared = view.subject_builder.check_out(subject, str(home))
        (home / STEPS).write_text(_script(prepared), encoding="utf-8", errors="surrogateescape")
        yield prepared


@contextmanager
def _shell_directory(results: Path) -> Iterator[Path]:
    """Lock and yield the first unused directory for a shell; it is empty or does not exist."""
    shells = results / "shells"
    for number in range(1, MOST_SHELLS + 1):
        home = shells / f"{number}"
        with try_exclusive_lock(results / "builds" / "locks" / f"shell-{number}.lock") as free:
            if not free:
                continue
            remove_tree(home)
            try:
                yield home
            finally:
                remove_tree(home)
                with suppress(OSError):
                    shells.rmdir()
            return
    raise UsageError(f"--shell: {MOST_SHELLS} shells of this study are open already; exit one of them")


def steps_script(prepared: ManualBuild) -> Path:
    """Return the file that runs all steps of a prepared recipe."""
    return Path(prepared.log).parent / STEPS


def _script(prepared: ManualBuild) -> str:
    """Return a script of the steps as a build runs them: one shell for each, until the first failure."""
    lines = [f"/bin/sh -eu -c {shlex.quote(line)}" for line in prepared.lines]
    return "\n".join(["set -ex", f"cd {shlex.quote(prepared.directory)}", *lines, ""])


def _variant(study: Study, name: str | None) -> str:
    names = tuple(study.variants)
    if name is None:
        if PLAIN in names or len(names) == 1:
            return PLAIN if PLAIN in names else names[0]
        raise UsageError(f"--variant: choose one of {listed(names, 'or')}")
    if name not in names:
        raise UsageError(f"--variant {quoted(name)}: the study has no such variant{suggestion(name, names)}")
    return name
