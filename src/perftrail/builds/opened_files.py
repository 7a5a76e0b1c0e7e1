"""Whether files that a build or a benchmark opened by itself have changed since; the rule is in docs/decisions/0045.

`present_state` compares files with the observations of their states. `ObservedBuilds` keeps the observations of builds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
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
    """What is known of the environment of builds, stored in a directory.

    These are the files outside of their trees that observed builds opened, and the changes that a repeated build
    without an observation showed. Each state is computed once.
    """

    def __init__(self, directory: Path, *, study: Path) -> None:
        self._directory = directory
        self._study = study
        self._known: dict[str, OpenedFiles] = {}

    def of(self, key: str) -> OpenedFiles:
        """Return the opened files of builds; `key` is the content key of their inputs except the tree."""
        earlier = self._texts(f"{key}.environments", "outputs")  # a parallel build may add one
        first = content_key(key, *earlier) if earlier else key
        if first not in self._known:
            state = present_state(first, self._read, study=self._study)
            self._known[first] = replace(state, changes=(*earlier, *state.changes))
        return self._known[first]

    def is_complete(self, key: str) -> bool:
        """Return whether all files of builds are known in the present state."""
        state = self.of(key)
        return state.observed and not self._texts(state.key, "incomplete")

    def add(self, key: str, contents: Mapping[str, str], *, incomplete: str = "") -> None:
        """Store an observation of the present state of builds, unless a parallel build was faster.

        `incomplete` states why files may be missing.
        """
        name = self.of(key).key
        facts = {"opened": dict(contents), "incomplete": [incomplete] if incomplete else []}
        self._write(name, facts, unless=lambda: self._read(name) is not None)
        self._known.clear()

    def add_environment(self, key: str, outputs: str) -> None:
        """Store that builds have other outputs in the present environment, one of them with this digest."""
        name = f"{key}.environments"
        self._write(name, {"outputs": [*self._texts(name, "outputs"), outputs]}, unless=lambda: False)

    def _write(self, name: str, facts: Mapping[str, object], *, unless: Callable[[], bool]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(self._directory / "lock"):
            if not unless():
                write_durably(self._directory / f"{name}.json", facts)

    def _read(self, key: str) -> Mapping[str, str] | None:
        """Return an observation; `None` if it does not exist or is unreadable."""
        opened = self._facts(key).get("opened")
        if not isinstance(opened, dict):
            return None
        return {str(path): str(content) for path, content in opened.items()}

    def _texts(self, name: str, kind: str) -> tuple[str, ...]:
        found = self._facts(name).get(kind)
        return tuple(map(str, found)) if isinstance(found, list) else ()

    def _facts(self, name: str) -> Mapping[str, object]:
        try:
            facts = json.loads((self._directory / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}
