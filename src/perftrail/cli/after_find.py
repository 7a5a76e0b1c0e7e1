"""Run `explain` and `revert` on the culprits of a search, for `find --then`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perftrail.errors import PerftrailError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.options import SessionOptions
    from perftrail.find.answer import FindAnswer, FindTable
    from perftrail.model.study import Study
    from perftrail.verbs.after_find import CulpritJson, NamedCulprit
    from perftrail.verbs.backport.revert import RevertReports
    from perftrail.verbs.explain.explain import ExplainReport


class AfterFind:
    """Explains and reverts the culprits of an answer, and prints the results unless `printed` is false."""

    def __init__(
        self,
        study: Study,
        wanted: Sequence[str],
        *,
        options: SessionOptions,
        engine: str | None,
        study_file: str | None,
        printed: bool,
    ) -> None:
        self._study = study
        self._wanted = wanted
        self._options = options
        self._engine = engine
        self._study_file = study_file
        self._printed = printed

    def run(self, answer: FindAnswer | FindTable) -> list[CulpritJson]:
        """Run the wanted commands on each culprit; return the results as `find --json` prints them."""
        from perftrail.verbs.after_find import named_culprits

        found = named_culprits(answer) if self._wanted else ()
        if self._wanted and not found:
            click.echo(f"--then {','.join(self._wanted)}: no single revision was found", err=True)
        return [self._examine(culprit, newest=answer.revisions[-1].id) for culprit in found]

    def _examine(self, culprit: NamedCulprit, *, newest: str) -> CulpritJson:
        explained, reverted, notes = None, None, []
        if "explain" in self._wanted:
            try:
                explained = self._explain(culprit)
            except PerftrailError as error:
                notes.append(f"not explained: {error}")
        if "revert" in self._wanted and not culprit.worse:
            notes.append("not reverted: it made no metric worse")
        elif "revert" in self._wanted:
            try:
                reverted = self._revert(culprit, newest=newest)
            except PerftrailError as error:
                notes.append(f"not reverted: {error}")
        if self._printed:
            self._print(culprit, explained, reverted, notes)
        return {
            "revision": culprit.revision.id,
            "inner": None if culprit.inner is None else culprit.inner.id,
            "explain": None if explained is None else explained.as_json(),
            "revert": None if reverted is None else reverted.as_json(),
            "note": "; ".join(notes),
        }

    def _explain(self, culprit: NamedCulprit) -> ExplainReport:
        from perftrail.cli.commands.explain import explain

        return explain(self._study, (culprit.inner or culprit.revision).id, options=self._options)

    def _revert(self, culprit: NamedCulprit, *, newest: str) -> RevertReports:
        from perftrail.cli.commands.revert import revert
        from perftrail.verbs.backport.patch import RevertRequest

        study = replace(self._study, find=replace(self._study.find, metric=culprit.metrics))
        inner = None if culprit.inner is None else culprit.inner.id
        request = RevertRequest(culprit=culprit.revision.id, onto=newest, inner=inner)
        return revert(study, request, options=self._options, engine=self._engine)

    def _print(
        self,
        culprit: NamedCulprit,
        explained: ExplainReport | None,
        reverted: RevertReports | None,
        notes: Sequence[str],
    ) -> None:
        from perftrail.model.wording import escaped
        from perftrail.present.explain import print_explained
        from perftrail.present.revert import print_reverts

        if explained is not None:
            click.echo()
            print_explained(explained, study_file=self._study_file)
        if reverted is not None:
            click.echo()
            kind = self._study.searched_source.kind
            print_reverts(reverted, source_kind=kind, study_file=self._study_file)
        for note in notes:
            click.echo(f"{culprit.revision.short}: {escaped(note, longest=None)}")
