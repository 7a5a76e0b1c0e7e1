"""Whether files that a build or a benchmark opened by itself have changed since; the rule is in docs/decisions/0045.

`present_state` compares files with the observations of their states. `ObservedBuilds` keeps the observations of builds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.artefact import content_of_opened, write_durably
from perftrail.file_tree import exclusive_lock
from perftrail.model.build import content_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFiles:
    """The known opened files of a build or a benchmark in their present state, `key`.

    `changes` are the content keys of the states that differ from an observed one, the first observation first; empty
    while nothing changed. `changed` are the files that differ from the last observed state. `observed` is whether the
    present state was observed.
    """

    key: str
    files: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    observed: bool = False


def present_state(
    key: str, observed: Callable[[str], Mapping[str, str] | None], *, study: Path
) -> OpenedFiles:
    """Return the present state of what opens files; `key` is the content key of everything else that it depends on.

    `observed` returns the contents of the opened files when a state was observed, or `None`. Relative names are below
    `study`.
    """
    state = OpenedFiles(key=key)
    while (before := observed(state.key)) is not None:
        present = {path: content_of_opened(study / path) for path in before}
        files = tuple(sorted({*state.files, *before}))
        changed = tuple(path for path in sorted(before) if present[path] != before[path])
        if not changed:
            return OpenedFiles(key=state.key, files=files, changes=state.changes, observed=True)
        changes = (*state.changes, content_key(sorted(present.items())))
        state = OpenedFiles(key=content_key(key, *changes), files=files, changes=changes, changed=changed)
    return state


class ObservedBuilds:
    """The files outside of their trees that observed builds opened, stored in a directory.

    Each state is computed once.
    """

    def __init__(self, directory: Path, *, study: Path) -> None:
        self._directory = directory
        self._study = study
        self._known: dict[str, OpenedFiles] = {}

    def of(self, key: str) -> OpenedFiles:
        """Return the opened files of builds; `key` is the content key of their inputs except the tree."""
        if key not in self._known:
            self._known[key] = present_state(key, self._read, study=self._study)
        return self._known[key]

    def add(self, key: str, contents: Mapping[str, str]) -> None:
        """Store an observation of the present state of builds, unless a parallel build was faster."""
        file = self._file(self.of(key).key)
        self._directory.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(self._directory / "lock"):
            if self._read(file.stem) is None:
                write_durably(file, {"opened": dict(contents)})
        del self._known[key]

    def _file(self, key: str) -> Path:
        return self._directory / f"{key}.json"

    def _read(self, key: str) -> Mapping[str, str] | None:
        """Return an observation; `None` if it does not exist or is unreadable."""
        try:
            opened = json.loads(self._file(key).read_bytes())["opened"]
            return {str(path): str(content) for path, content in opened.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
