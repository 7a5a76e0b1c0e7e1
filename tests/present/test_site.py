"""The static site: publications joined, the state of each metric, the badge, and pages that are inert."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from perftrail import studyfile
from perftrail.errors import FormatError, UsageError
from perftrail.formats import read
from perftrail.formats.publication import VERSION_KEY, decode, encode
from perftrail.local_engine import LocalEngine
from perftrail.model.published import (
    Publication,
    PublishedComparison,
    PublishedMachine,
    PublishedMetric,
    PublishedRevision,
    PublishedValues,
    PublishedVerdict,
)
from perftrail.model.subject import Revision
from perftrail.present.html_page import LinkedFile, Page, Section, Verdict
from perftrail.present.site.badge import COLOURS, Badge, badge_of, to_shields, to_svg
from perftrail.present.site.directory import Site, state_json
from perftrail.present.site.history import FEWEST_REVISIONS, read_history, revisions_in_order
from perftrail.present.site.index_page import (
    PublishedReport,
    environment_changes,
    metric_row,
    to_index,
    verdict_of,
)
from tests.charts.examples import HOSTILE
from tests.present.test_page import Tags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.benchmark import Value
    from perftrail.model.metrics import Better
    from perftrail.model.published import VerdictWord
    from perftrail.model.study import Study
    from perftrail.present.site.history import SiteHistory, State

STUDY = """\
[study]
title = "How fast is it?"
[source]
kind = "git"
location = "."
[benchmark.work]
command = "true"
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    file = tmp_path / "perftrail.toml"
    file.write_text(STUDY)
    return studyfile.load(str(file), to_read=True)


def revision(number: int, *, message: str = "change") -> PublishedRevision:
    return PublishedRevision(
        id=f"{number:040x}", time=f"2026-01-01T{number // 60:02}:{number % 60:02}:00+00:00", message=message
    )


def metric(
    levels: Mapping[int, float],
    *,
    name: str = "work",
    better: Better = "lower",
    unit: str = "s",
    samples: int = 5,
    first: int = 0,
) -> PublishedMetric:
    """A metric with these levels by revision, each with a little noise that is the same in each run."""
    rng = np.random.default_rng(len(name))
    return PublishedMetric(
        benchmark=name,
        variant="plain",
        point={},
        metric="wall",
        unit=unit,
        better=better,
        measured=tuple(
            PublishedValues(
                revision=number - first,
                values=tuple((level * rng.lognormal(0.0, 0.003, samples)).tolist()),
                build=f"build {number}",
            )
            for number, level in levels.items()
        ),
    )


def publication(
    *metrics: PublishedMetric,
    revisions: Sequence[PublishedRevision],
    machine: str = "here",
    day: int = 1,
    comparisons: tuple[PublishedComparison, ...] = (),
    facts: Mapping[str, str] | None = None,
    title: str = "How fast is it?",
) -> Publication:
    return Publication(
        published=f"2026-01-{day:02}T00:00:00+00:00",
        study=title,
        perftrail="0",
        sentence="It is fast.",
        tone="plain",
        evidence=(("Certainty", "99 %"),),
        machine=PublishedMachine(id=machine, facts=facts or {"cpu": "a CPU"}, tools=("cc: gcc 12",)),
        revisions=tuple(revisions),
        metrics=metrics,
        comparisons=comparisons,
    )


def history_of(study: Study, *publications: Publication, source: Sequence[Revision] = ()) -> SiteHistory:
    return read_history(publications, source, study=study, searches=(), engine=LocalEngine())


def step(count: int, *, at: int, ratio: float) -> dict[int, float]:
    return {number: ratio if number >= at else 1.0 for number in range(count)}


REVISIONS = [revision(number) for number in range(40)]


@pytest.mark.parametrize(
    ("levels", "better", "state", "word"),
    [
        (step(40, at=30, ratio=1.2), "lower", "slower", "slower"),
        (step(40, at=30, ratio=0.8), "lower", "faster", "faster"),
        (step(40, at=30, ratio=1.2), "higher", "faster", "better"),
        (step(40, at=40, ratio=1.2), "lower", "same", "no change"),
        (step(40, at=8, ratio=1.2), "lower", "same", "no change"),
        (step(FEWEST_REVISIONS - 1, at=9, ratio=1.2), "lower", "unclear", "unclear"),
    ],
)
def test_the_state_of_a_metric_is_its_change_within_the_newest_revisions(
    study: Study, levels: dict[int, float], better: Better, state: State, word: str
) -> None:
    unit = "s" if better == "lower" else "1/s"
    found = history_of(study, publication(metric(levels, better=better, unit=unit), revisions=REVISIONS))
    [row] = found.metrics
    assert (row.state, metric_row(row).word) == (state, word)


def test_a_change_that_was_undone_is_no_change(study: Study) -> None:
    levels = {number: 1.3 if 22 <= number < 31 else 1.0 for number in range(40)}
    [row] = history_of(study, publication(metric(levels), revisions=REVISIONS)).metrics
    assert len(row.changes) == 2
    assert row.state == "same"
    assert metric_row(row).change.startswith("of 2 % or more: ")


def test_noise_that_hides_changes_is_unclear_and_no_change_has_a_size(study: Study) -> None:
    rng = np.random.default_rng(3)
    noisy = {number: rng.lognormal(0.0, 0.3) for number in range(40)}
    [row] = history_of(study, publication(metric(noisy), revisions=REVISIONS)).metrics
    assert row.state == "unclear"
    assert metric_row(row).change.startswith("noisy: a change below ")
    [quiet] = history_of(study, publication(metric(step(40, at=40, ratio=1.0)), revisions=REVISIONS)).metrics
    assert metric_row(quiet).change == "of 2 % or more"


def test_a_jump_of_the_newest_build_alone_is_a_possible_change(study: Study) -> None:
    [row] = history_of(study, publication(metric(step(40, at=39, ratio=1.5)), revisions=REVISIONS)).metrics
    assert row.state == "unclear"
    assert metric_row(row).change.startswith("possible change: +50")


def test_a_removed_benchmark_is_listed_last_and_not_counted(study: Study) -> None:
    removed = metric(step(19, at=10, ratio=1.5), name="removed")
    found = history_of(study, publication(removed, metric(step(40, at=40, ratio=1.0)), revisions=REVISIONS))
    assert [(each.name.benchmark, each.state) for each in found.metrics] == [
        ("work", "same"),
        ("removed", "retired"),
    ]
    assert verdict_of(found).sentence == "No change in 1 metric within the newest 20 measured revisions."
    assert badge_of(found).message == "no change"
    assert metric_row(found.metrics[1]).change.startswith("last measured at 0000000000")


def test_a_comparison_of_the_newest_revision_decides(study: Study) -> None:
    def compared(head: int, verdict: VerdictWord) -> PublishedComparison:
        effect = {"slower": 1.1, "unclear": 0.0}.get(verdict, 1.0)
        judged = PublishedVerdict(
            benchmark="work", variant="plain", point={}, metric="wall", verdict=verdict, effect=effect,
            low=effect * 0.99, high=effect * 1.01,
        )  # fmt: skip
        return PublishedComparison(
            base=REVISIONS[38].id, head=REVISIONS[head].id, base_name="the base <b>", finished="2026-01-01",
            answer="", verdicts=(judged,),
        )  # fmt: skip

    fast = metric(step(40, at=40, ratio=1.0))
    for comparison, state in ((compared(39, "slower"), "slower"), (compared(20, "slower"), "same")):
        found = history_of(study, publication(fast, revisions=REVISIONS, comparisons=(comparison,)))
        assert found.metrics[0].state == state
    decided = history_of(study, publication(fast, revisions=REVISIONS, comparisons=(compared(39, "slower"),)))
    assert verdict_of(decided).sentence == "1 of 1 metric is slower than at the base <b>."
    assert metric_row(decided.metrics[0]).change == "+10.0 % [+8.9, +11.1]"


def test_values_of_different_machines_are_never_compared(study: Study) -> None:
    one = publication(metric(step(20, at=20, ratio=1.0)), revisions=REVISIONS[:20])
    later = metric(dict.fromkeys(range(20, 40), 2.0), first=20)
    other = publication(later, revisions=REVISIONS[20:], machine="there", day=2)
    found = history_of(study, one, other)
    assert found.metrics[0].changes == ()
    assert found.metrics[0].state == "same"
    assert found.metrics[0].newest.machine == "there"
    assert "never compared" in verdict_of(found).notes[0]


def test_a_changed_machine_is_named(study: Study) -> None:
    before = publication(metric({0: 1.0}), revisions=REVISIONS[:1], facts={"cpu": "old", "kernel": "6.1"})
    after = replace(
        publication(metric({0: 1.0}), revisions=REVISIONS[:1], facts={"cpu": "new", "boot_id": "x"}),
        machine=PublishedMachine(
            id="here", facts={"cpu": "new", "boot_id": "x"}, tools=("cc: gcc 13", "go: go1.22")
        ),
    )
    assert list(environment_changes(before, after)) == [
        "CPU old → new",
        "kernel 6.1 → unknown",
        "cc gcc 12 → gcc 13",
    ]
    assert "CPU old → new" in verdict_of(history_of(study, before, after)).notes[0]


def test_later_values_are_added_and_rebuilt_ones_replace(study: Study) -> None:
    first = metric({0: 1.0, 1: 1.0})
    more = replace(first, measured=(PublishedValues(revision=0, values=(9.0,), build="build 0"),))
    again = replace(first, measured=(PublishedValues(revision=1, values=(7.0,), build="new", replaces=True),))
    found = history_of(
        study,
        publication(first, revisions=REVISIONS[:2]),
        publication(more, revisions=REVISIONS[:1], day=2),
        publication(again, revisions=REVISIONS[:2], day=3),
    )
    values = [point.row.values for point in found.metrics[0].points]
    assert values == [(*first.measured[0].values, 9.0), (7.0,)]


def test_revisions_keep_their_place_when_the_history_loses_them() -> None:
    def names(publications: Sequence[Publication], *history: str) -> list[str]:
        ordered = revisions_in_order(publications, [Revision(id=id_) for id_ in history])
        return [each.id for each in ordered]

    def published(*ids: str) -> Publication:
        return publication(revisions=[PublishedRevision(id=id_) for id_ in ids])

    assert names([published("a", "lost", "c")], "a", "b", "c") == ["a", "lost", "b", "c"]
    assert names([published("a", "b"), published("c")], "b", "c") == ["a", "b", "c"]
    assert names([published("x", "y"), published("y", "z")]) == ["x", "y", "z"]
    chain = [f"r{number}" for number in range(5_000)]
    assert names([published(*chain)], "new") == [*chain, "new"]


def test_a_publication_is_read_as_it_was_written_and_imported() -> None:
    point: dict[str, Value] = {"n": 3, "kind": "a=b", "share": 0.5}
    written = publication(replace(metric({0: 1.0, 1: 2.0}), point=point, variant="fast"), revisions=REVISIONS)
    content = encode(written)
    assert decode(content) == written
    found = read(content, name="results.json")
    assert found.format == "publication"
    first, second = found.series
    assert (first.benchmark, first.metric, first.unit, first.machine) == ("work", "wall", "s", "here")
    assert first.subject == f"{REVISIONS[0].id} (fast)"
    assert first.point == (("n", "3"), ("kind", "a=b"), ("share", "0.5"))
    assert second.values == written.metrics[0].measured[1].values
    assert second.when == datetime.fromisoformat(REVISIONS[1].time)


def _with_metric(data: dict[str, Any], **changes: object) -> dict[str, object]:
    return {**data, "metrics": [{**data["metrics"][0], **changes}]}


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda data: {**data, VERSION_KEY: 2}, "newer perftrail"),
        (lambda data: {**data, "machine": 1}, "not a whole publication"),
        (lambda data: {**data, "revisions": []}, "names revision 0 of 0"),
        (lambda data: _with_metric(data, metric=""), 'no name or no values for a metric of "work"'),
        (lambda data: _with_metric(data, measured=[]), 'no name or no values for a metric of "work"'),
        (
            lambda data: _with_metric(data, measured=[{"revision": 0, "values": []}]),
            'no name or no values for a metric of "work"',
        ),
        (lambda data: {**data, "sentence": "\ud800"}, "not Unicode text"),
    ],
)
def test_a_damaged_publication_is_refused(spoil: object, expected: str) -> None:
    data = json.loads(encode(publication(metric({0: 1.0}), revisions=REVISIONS)))
    assert callable(spoil)
    with pytest.raises(FormatError, match=expected):
        decode(json.dumps(spoil(data)).encode())


def hostile() -> Publication:
    verdict = PublishedVerdict(
        benchmark=HOSTILE, variant=HOSTILE, point={HOSTILE: HOSTILE}, metric=HOSTILE, verdict="slower",
        effect=1.2, low=1.1, high=1.3,
    )  # fmt: skip
    revisions = [revision(number, message=HOSTILE) for number in range(6)]
    last = replace(revisions[-1], label=HOSTILE, time=HOSTILE)
    found = metric(step(6, at=6, ratio=1.0))
    found = replace(
        found, benchmark=HOSTILE, variant=HOSTILE, point={HOSTILE: HOSTILE}, metric=HOSTILE, unit=HOSTILE
    )
    comparison = PublishedComparison(
        base=HOSTILE, head=last.id, base_name=HOSTILE, finished=HOSTILE, answer=HOSTILE, verdicts=(verdict,)
    )
    made = publication(
        found, revisions=[*revisions[:-1], last], comparisons=(comparison,), title=HOSTILE, machine=HOSTILE
    )
    return replace(made, sentence=HOSTILE, evidence=((HOSTILE, HOSTILE),), published=HOSTILE)


def index_of(study: Study, *publications: Publication) -> str:
    reports = [
        PublishedReport(directory=f"reports/{number}", publication=each)
        for number, each in enumerate(publications)
    ]
    return to_index(history_of(study, *publications), reports)


def test_hostile_text_adds_no_tag_and_no_script_to_the_index(study: Study) -> None:
    spoilt = hostile()
    verdict = replace(
        spoilt.comparisons[0].verdicts[0], benchmark="work", variant="v", point={"n": 1}, metric="m"
    )
    plain = replace(
        publication(
            replace(metric(step(6, at=6, ratio=1.0)), variant="v", point={"n": 1}, metric="m", unit="x"),
            revisions=[revision(number) for number in range(6)],
        ),
        comparisons=(replace(spoilt.comparisons[0], head=revision(5).id, verdicts=(verdict,)),),
    )
    text = index_of(study, spoilt)
    tags = Tags(text)
    assert [tag for tag, _ in tags.tags] == [tag for tag, _ in Tags(index_of(study, plain)).tags]
    assert not any(name.startswith("on") for _, attributes in tags.tags for name in attributes)
    assert "\u202e" not in text
    json.loads(tags.scripts[0])


def test_the_index_loads_nothing_and_runs_only_its_own_script(study: Study) -> None:
    text = index_of(study, publication(metric(step(40, at=30, ratio=1.2)), revisions=REVISIONS))
    tags = Tags(text).tags
    addresses = [
        value for _, attributes in tags for name in ("src", "href") if (value := attributes.get(name))
    ]
    assert addresses == ["reports/0/index.html", "badge.svg", "badge.json", "state.json"]
    policy = next(
        value for tag, attributes in tags if (value := attributes.get("content")) and "src" in value
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert policy.count("'sha256-") == 1


def test_the_index_of_many_metrics_is_small_and_begins_with_the_worst(study: Study) -> None:
    names = [f"suite-{number % 3}/item-{number:03}" for number in range(60)]
    metrics = [metric(step(40, at=32, ratio=1.3 if name == names[17] else 1.0), name=name) for name in names]
    text = index_of(study, publication(*metrics, revisions=REVISIONS))
    shown = re.findall(r'class="name">([^<]*)<', text)
    assert shown[0] == f"{names[17]}.wall"
    assert len(shown) == 60
    # each point of a chart has three small numbers; rows, names and the page's own text come on top
    assert len(text) < 60 * 40 * 16 + 60 * 900 + 30_000


def test_a_badge_states_the_worst_in_words(study: Study) -> None:
    def badge(*metrics: PublishedMetric) -> Badge:
        return badge_of(history_of(study, publication(*metrics, revisions=REVISIONS)))

    slow, fast = step(40, at=30, ratio=1.2), step(40, at=30, ratio=0.8)
    same, few = step(40, at=40, ratio=1.0), {39: 1.0}
    assert badge(metric(slow), metric(slow, name="more"), metric(fast, name="x")).message == "2 slower"
    assert badge(metric(slow), metric(fast, name="x", better="higher", unit="1/s")).message == "2 worse"
    assert badge(metric(fast), metric(same, name="x")).message == "1 faster"
    assert badge(metric(same)).message == "no change"
    assert badge(metric(same), metric(few, name="x")).message == "no change, 1 unclear"
    assert badge(metric(few)) == Badge(message="unclear", state="unclear")


@pytest.mark.parametrize("colour", COLOURS.values())
def test_a_badge_is_readable(colour: str) -> None:
    parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    assert 1.05 / (luminance + 0.05) >= 4.5


def test_a_badge_keeps_hostile_text_text() -> None:
    root = ET.fromstring(to_svg(Badge(message=HOSTILE, state="slower"), label=HOSTILE))
    names = {each.tag.partition("}")[2] for each in root.iter()}
    assert names == {"svg", "title", "clipPath", "rect", "g", "path", "text"}
    assert to_shields(Badge(message="1 slower", state="slower")) == {
        "schemaVersion": 1,
        "label": "performance",
        "message": "1 slower",
        "color": "b34700",
    }


def page(sentence: str, *files: str) -> Page:
    """A report that links files."""
    return Page(
        question="q",
        verdict=Verdict(sentence=sentence, tone="plain", facts=()),
        lead=None,
        sections=(
            Section(
                name="why",
                title="Why",
                files=tuple(
                    LinkedFile(name=name, title="Flame graph", content=lambda: "the flame graph")
                    for name in files
                ),
            ),
        ),
        written_by="perftrail",
    )


def test_a_site_only_adds(study: Study, tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    first = publication(metric({0: 1.0}), revisions=REVISIONS[:1])
    with site.locked():
        old = site.add(first, page("the first report", "flame-1.html"), {})
        assert [each.publication for each in site.reports()] == [first]
        new = site.add(replace(first, published="2026-01-01T00:00:00+00:00"), page("the same second"), {})
        reports = site.reports()
    assert old.address != new.address
    assert "the first report" in (site.root / old.address).read_text()
    assert (site.root / old.directory / "flame-1.html").read_text() == "the flame graph"
    assert site.has_files(page("", "flame-1.html"), [old])
    assert not site.has_files(page("", "flame-1.html"), [old, new])
    assert {each.address for each in reports} == {old.address, new.address}
    (site.root / new.address).unlink()  # to save space
    reports = site.reports()
    found = history_of(study, *(each.publication for each in reports))
    site.write_state(found, reports)
    index = (site.root / "index.html").read_text()
    assert (old.address in index, new.address in index) == (True, False)
    state = json.loads((site.root / "state.json").read_text())
    assert state == state_json(found, reports)
    assert state["results"] == [old.results, new.results]
    assert not list(site.root.glob(".publish-*"))


def test_a_foreign_page_and_a_damaged_publication_are_refused(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>the manual</title>")
    with pytest.raises(UsageError, match=r"did not write this page.*-o .*performance"):
        Site(tmp_path).reports()
    (tmp_path / "index.html").unlink()
    damaged = tmp_path / "reports" / "20260101-000000-a" / "results.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text('{"perftrail_publication": 1, "published"')
    with pytest.raises(UsageError, match=r"results\.json: line 1: is not valid JSON.*restore the file"):
        Site(tmp_path).reports()


def test_each_study_has_its_own_site(tmp_path: Path) -> None:
    one = publication(metric({0: 1.0}), revisions=REVISIONS[:1])
    other = publication(metric({0: 1.0}, name="else"), revisions=REVISIONS[:1], title="Another question?")
    Site(tmp_path).refuse_other_study(replace(one, study="A new title"), [one])
    Site(tmp_path).refuse_other_study(replace(other, study=one.study), [one])
    with pytest.raises(UsageError, match=r'another study, "How fast is it\?"; .*another-question'):
        Site(tmp_path).refuse_other_study(other, [one])
