"""`init`: looks at a program, writes a first study of it, and says what was found."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.model.wording import listed, suggestion
from perftrail.process.launcher import Launcher
from perftrail.studyfile import FILE_NAME
from perftrail.workflows.initial.draft import Draft
from perftrail.workflows.initial.looking import look
from perftrail.workflows.initial.systems import SYSTEMS, detect
from perftrail.workflows.initial.writing import write

if TYPE_CHECKING:
    from perftrail.model.search_record import Json
    from perftrail.workflows.initial.draft import Building, History
    from perftrail.workflows.initial.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A first study that was written to `file`, and what is to be known of it before it is run.

    `lacking` are programs that the build starts and that are not installed here.
    """

    file: Path
    draft: Draft
    lacking: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """What was found, as `init --json` prints it."""
        history, building = self.draft.history, self.draft.building
        return {
            "file": str(self.file),
            "source": {
                "kind": history.kind,
                "location": history.location,
                "range": history.range or None,
                "revisions": history.revisions,
                "troubles": list(history.troubles),
            },
            "build": None
            if building is None
            else {
                "system": building.system,
                "manifest": building.manifest,
                "directory": self.draft.directory or ".",
                "steps": [step.line for step in building.steps],
                "outputs": list(building.outputs),
                "lacking": list(self.lacking),
                "others": [other.system for other in self.draft.others],
            },
            "benchmark": None
            if building is None
            else {"command": building.trial.command, "placeholder": building.trial.placeholder},
        }


def begin(directory: Path, *, output: Path, system: str | None, force: bool) -> Begun:
    """Write a first study of a directory into a file, or into the directory `output`.

    `system` chooses among the build systems that are found. Raises `UsageError` when there is a study
    already and not `force`, when nothing there is made with `system`, and when the file cannot be written.
    """
    file = output if output.suffix == ".toml" else output / FILE_NAME
    if file.exists() and not force:
        raise UsageError(f"{file}: there is a study already; --force writes another over it")
    with Launcher() as starter:
        seen = look(directory, starter, study=file.parent)
    draft = _draft(seen.tree, system=system, history=seen.history)
    _write(file, write(draft))
    tools = draft.building.tools if draft.building else ()
    return Begun(file=file, draft=draft, lacking=tuple(tool for tool in tools if shutil.which(tool) is None))


def _draft(tree: Tree, *, system: str | None, history: History) -> Draft:
    found = detect(tree)
    if system is not None:
        _check_known(system, [building.system for building, _ in found])
        found = tuple(sorted(found, key=lambda each: each[0].system != system))
    # Of two that both fit, the one whose tools are here can be tried at once.
    elif found and _lacks(found[0][0]):
        found = tuple(sorted(found, key=lambda each: _lacks(each[0])))
    building, place = found[0] if found else (None, tree.place)
    return Draft(
        name=tree.name,
        directory=place,
        history=history,
        building=building,
        others=tuple(other for other, _ in found[1:]),
    )


def _lacks(building: Building) -> bool:
    return any(shutil.which(tool) is None for tool in building.tools)


def _check_known(system: str, found: list[str]) -> None:
    if system in found:
        return
    if system not in SYSTEMS:
        raise UsageError(f"--build {system}: not known{suggestion(system, SYSTEMS)}")
    there = f"; found {listed(found, 'and')}" if found else "; no build system was found"
    raise UsageError(f"--build {system}: nothing here is made with it{there}")


def _write(file: Path, text: str) -> None:
    """Put the text into its place whole or not at all."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as ours:
            ours.write(text)
        made = Path(ours.name)
        made.chmod(0o644)
        made.replace(file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {(error.strerror or str(error)).lower()}") from error
