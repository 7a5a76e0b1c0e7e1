"""The files of a site. A publication is a directory that never changes; all other files are written again from these.

- ``reports/TIME-REVISION/``: the report ``index.html`` with its flame graphs, and the values that it added in
  ``results.json``.
- ``index.html``, ``state.json``, ``badge.svg`` and ``badge.json``: the state of all publications.

A new publication is complete before it appears, and each other file is replaced at once. So a killed `publish` leaves a
site that works; the next one adds what is missing.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.errors import FormatError, UsageError
from perftrail.file_tree import (
    claimed_directory,
    open_to_read,
    remove_left_over,
    sync_directory,
    sync_file_system,
)
from perftrail.formats.publication import decode, encode
from perftrail.model.wording import quoted
from perftrail.present.html_page import WrittenFileJson, to_html, unwritable, write_linked
from perftrail.present.report.words import slug
from perftrail.present.site.badge import badge_of, to_shields, to_svg
from perftrail.present.site.history import State
from perftrail.present.site.index_page import PublishedReport, state_word, to_index, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.published import Publication
    from perftrail.present.html_page import Page
    from perftrail.present.site.history import MetricState, SiteHistory

REPORTS, RESULTS, PAGE = "reports", "results.json", "index.html"
STATE, BADGE, SHIELDS = "state.json", "badge.svg", "badge.json"
UNFINISHED = ".publish-"
"""Prefix of the directory of files that are being written."""

GENERATOR = b'<meta name="generator" content="perftrail publish">'
"""Line of every index page of a site, among its first bytes."""

HEAD_BYTES = 4096
MOST_BYTES = 1 << 28
"""Largest ``results.json`` that is read."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


class MetricStateJson(TypedDict):
    """The state of a metric at the newest revision."""

    name: str
    state: Annotated[State, "slower: worse, in whichever direction the metric is better"]
    word: Annotated[str, "the state in a word, for example worse for a metric that is no time"]
    unit: str
    machine: Annotated[str, "the machine of the newest value; values of different machines are not compared"]
    revision: str
    value: float
    low: float
    high: float
    effect: Annotated[float | None, "the change that decides the state, after/before; null: none"]


class SiteJson(TypedDict):
    """The state of a site."""

    study: str
    published: Annotated[str, "time of the last publication, UTC"]
    answer: str
    counts: Annotated[dict[State, int], "number of metrics in each state"]
    badge: str
    revision: Annotated[str, "the newest measured revision"]
    results: Annotated[list[str], "addresses of the values of each publication, the oldest first"]
    metrics: Annotated[list[MetricStateJson], "the worst first"]


class PublishJson(TypedDict):
    """What `publish` wrote."""

    answer: Annotated[str, "the state of the site in a sentence"]
    badge: str
    counts: dict[State, int]
    report: Annotated[str | None, "file of the new report; null: everything was already published"]
    values: Annotated[int, "values that this publication added"]
    revisions: Annotated[int, "measured revisions of the site"]
    reports: Annotated[int, "published reports"]
    files: list[WrittenFileJson]


@dataclass(frozen=True, slots=True)
class Site:
    """A directory with a site, or a new one."""

    root: Path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the directory, and keep other publishing processes out of it. Raises `UsageError`."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            number = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise unwritable(str(self.root), error) from error
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(number, fcntl.LOCK_EX)
            yield
        finally:
            os.close(number)

    def reports(self) -> tuple[PublishedReport, ...]:
        """Return every publication, the oldest first. Raises `UsageError` for a damaged one, and for a foreign page."""
        self._refuse_foreign()
        names = sorted(
            each.parent.name
            for each in (self.root / REPORTS).glob(f"*/{RESULTS}")
            if _NAME.fullmatch(each.parent.name)
        )
        found = [
            PublishedReport(
                directory=f"{REPORTS}/{name}",
                publication=self._read(name),
                has_page=(self.root / REPORTS / name / PAGE).is_file(),
            )
            for name in names
        ]
        return tuple(sorted(found, key=lambda each: each.publication.published))

    def _refuse_foreign(self) -> None:
        """Raise `UsageError` if the directory has a page that perftrail did not publish."""
        reports = self.root / REPORTS
        if reports.is_symlink() or (reports.exists() and not reports.is_dir()):
            raise UsageError(f"{reports} must be a directory; publish into another directory with -o")
        page = self.root / PAGE
        if page.exists():
            try:
                with open_to_read(page, follow=False) as file:
                    head = file.read(HEAD_BYTES)
            except OSError as error:
                raise UsageError(
                    f"{page}: cannot be read: {error.strerror}; publish into another -o"
                ) from error
            if GENERATOR not in head:
                raise UsageError(
                    f"{page}: perftrail publish did not write this page, and does not replace it; publish into another "
                    f"directory, for example -o {self.root / 'performance'}"
                )

    def _read(self, name: str) -> Publication:
        file = self.root / REPORTS / name / RESULTS
        try:
            with open_to_read(file, follow=False) as opened:
                content = opened.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise FormatError("is too large")
            return decode(content)
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
        except (FormatError, ValueError) as error:
            raise UsageError(
                f"{file}: {error}; restore the file, or publish into another directory with -o"
            ) from error

    def refuse_other_study(self, publication: Publication, earlier: Sequence[Publication]) -> None:
        """Raise `UsageError` if the directory has the results of another study: other title, no common benchmark."""
        known = {metric.benchmark for each in earlier for metric in each.metrics}
        new = {metric.benchmark for metric in publication.metrics}
        titles = {each.study for each in earlier}
        if known and new and known.isdisjoint(new) and publication.study not in titles:
            raise UsageError(
                f"-o {self.root}: has the results of another study, {quoted(earlier[-1].study)}; publish each "
                f"study into its own directory, for example -o {self.root / slug(publication.study)}"
            )

    def has_files(self, page: Page, reports: Sequence[PublishedReport]) -> bool:
        """Whether the last publication has each file that the page links."""
        return all((self.root / reports[-1].directory / file.name).is_file() for file in page.files)

    def add(self, publication: Publication, page: Page, stills: Mapping[str, str]) -> PublishedReport:
        """Add a publication and its report; `stills` are the charts. Raises `UsageError` if that is not possible."""
        newest = publication.revisions[-1].id[:10] if publication.revisions else "answer"
        time = re.sub(r"\D", "", publication.published[:19])
        name = slug(f"{time[:8]}-{time[8:14]}-{newest}", self._taken())
        with self._unfinished() as unfinished:
            new = unfinished / name
            new.mkdir()
            (new / PAGE).write_text(to_html(page, stills), encoding="utf-8")
            write_linked(page, new)
            (new / RESULTS).write_bytes(encode(publication))
            new.chmod(0o755)
            (self.root / REPORTS).mkdir(exist_ok=True)
            sync_file_system(unfinished)
            new.rename(self.root / REPORTS / name)
            sync_directory(self.root / REPORTS)
        return PublishedReport(directory=f"{REPORTS}/{name}", publication=publication)

    def _taken(self) -> frozenset[str]:
        return frozenset(each.name for each in (self.root / REPORTS).glob("*"))

    def write_state(self, history: SiteHistory, reports: Sequence[PublishedReport]) -> tuple[Path, ...]:
        """Write the index page, the badge and the state; return the files. A file with this content is not written."""
        badge = badge_of(history)
        contents = {
            PAGE: to_index(history, reports),
            STATE: json.dumps(state_json(history, reports), indent=1) + "\n",
            BADGE: to_svg(badge),
            SHIELDS: json.dumps(to_shields(badge)) + "\n",
        }
        with self._unfinished() as unfinished:
            self._replace(unfinished, contents)
        return tuple(self.root / name for name in contents)

    def _replace(self, unfinished: Path, contents: Mapping[str, str]) -> None:
        for name, content in contents.items():
            (unfinished / name).write_text(content, encoding="utf-8")
        sync_file_system(unfinished)
        for name in contents:
            (unfinished / name).replace(self.root / name)
        sync_directory(self.root)

    @contextmanager
    def _unfinished(self) -> Iterator[Path]:
        """Yield a directory for files that are being written. Raises `UsageError` if they cannot be."""
        try:
            remove_left_over(UNFINISHED, below=self.root)
            with claimed_directory(UNFINISHED, below=self.root) as unfinished:
                yield unfinished
        except OSError as error:
            raise unwritable(str(self.root), error) from error


def state_json(history: SiteHistory, reports: Sequence[PublishedReport]) -> SiteJson:
    """Return the state of a site."""
    return {
        "study": history.study,
        "published": history.publications[-1].published,
        "answer": verdict_of(history).sentence,
        "counts": dict(history.counts),
        "badge": badge_of(history).message,
        "revision": history.revisions[-1].id if history.revisions else "",
        "results": [each.results for each in reports],
        "metrics": [_metric_json(each) for each in history.metrics],
    }


def _metric_json(metric: MetricState) -> MetricStateJson:
    estimate = metric.newest.row.estimate
    assert estimate is not None
    return {
        "name": str(metric.name),
        "state": metric.state,
        "word": state_word(metric),
        "unit": metric.unit,
        "machine": metric.newest.machine,
        "revision": metric.newest.row.subject.revision.id,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "effect": None if metric.recent is None else metric.recent.effect,
    }
