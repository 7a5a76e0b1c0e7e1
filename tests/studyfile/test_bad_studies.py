"""Each mistake that a study file can have, and its exact error messages."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.studyfile.studies import GOOD, SMALL, complaints, spoiled, without_table

TABLE = tomllib.loads((Path(__file__).parent / "bad.toml").read_text(encoding="utf-8"))["mistake"]


@dataclass(frozen=True)
class Spoiled:
    """The valid study with a mistake, and the expected error messages."""

    sentence: str
    expected: list[str]
    old: str = ""
    new: str = ""
    remove: str = ""

    def spoil(self, text: str) -> str:
        return spoiled(self.old, self.new, text=text) if self.old else without_table(self.remove, text=text)


MISTAKES = [Spoiled(**each) for each in TABLE]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.sentence)
def test_a_mistake_is_reported_with_its_line_and_key(case: Spoiled, tmp_path: Path) -> None:
    reported = complaints(tmp_path, case.spoil(GOOD))
    assert reported == [f"perftrail.toml:{each}" for each in case.expected]


def test_all_mistakes_of_a_file_are_reported_at_once_in_its_order(tmp_path: Path) -> None:
    text = GOOD
    chosen = [
        case
        for case in MISTAKES
        if case.sentence
        in {
            "a choice names the near miss",
            "a range has two dots",
            "a duration has units of its own",
            "a build step knows no parameters",
            "an exclusion names known variants",
            "a pattern needs a group",
            "a derived metric uses known metrics",
            "true is no number",
            "NaN is refused",
        }
    ]
    for case in chosen:
        text = case.spoil(text)
    expected = sorted(
        (each for case in chosen for each in case.expected), key=lambda expected: int(expected.split(":")[0])
    )
    assert len(expected) == 9
    assert complaints(tmp_path, text) == [f"perftrail.toml:{each}" for each in expected]


def test_a_missing_required_key_of_one_table_hides_no_mistake_of_another(tmp_path: Path) -> None:
    text = spoiled('command = "true"', 'shell = 1\n[find]\nmetric = "wal"', text=SMALL)
    assert complaints(tmp_path, text) == [
        "perftrail.toml:5: benchmark.it.command: missing; the command to measure, split into words; "
        "{parameter} is replaced by its value",
        "perftrail.toml:6: benchmark.it.shell: expected true or false, not the number 1",
        'perftrail.toml:8: find.metric: no metric "wal"; did you mean "wall"?',
    ]


MANY = """\
[source]
kind = "directory"
location = "."

[build]
steps = ["make", "cp {bulid}/a {build/prog"]

[variants.plain]
run.env = { N = "{thread}" }
[variants.other]

[benchmark.it]
command = "{bulid}/prog {study}/input.txt"
parameters = { threads = [1, 2, 2] }
counters = ["locks", "cycles"]
exclude = [{ thread = 1 }]
stdin = "words.txt"
metrics.rate = { pattern = "rate" }

[claims.first]
says = "It is fast."
metric = "speed"
variant = "plain"
against = "another"
ratio = "1..2"

[find]
metric = "speed"
variant = "another"
suspect = ["/src"]
"""


def test_no_mistake_hides_another_that_does_not_follow_from_it(tmp_path: Path) -> None:
    keys = [each.split(": ")[1] for each in complaints(tmp_path, MANY)]
    assert keys == [
        "build.steps",  # {bulid}
        "build.steps",  # {build
        "variants.plain.run.env.N",
        "benchmark.it.command",  # {bulid}
        "benchmark.it.command",  # input.txt
        "benchmark.it.parameters.threads",
        "benchmark.it.counters",
        "benchmark.it.exclude[0].thread",
        "benchmark.it.stdin",
        "benchmark.it.metrics.rate.pattern",
        "claims.first.metric",
        "claims.first.against",
        "find.metric",
        "find.variant",
        "find.suspect",
    ]


def test_a_metric_of_an_unreadable_counter_is_not_called_unknown(tmp_path: Path) -> None:
    text = SMALL + 'counters = ["lock"]\n[find]\nmetric = "instructions"\n'
    assert [each.split(": ")[1] for each in complaints(tmp_path, text)] == ["benchmark.it.counters"]


def test_a_metric_with_an_unreadable_table_is_not_called_unknown(tmp_path: Path) -> None:
    text = SMALL + 'metrics.rate = 3\n[find]\nmetric = "rate"\n'
    assert [each.split(": ")[1] for each in complaints(tmp_path, text)] == ["benchmark.it.metrics.rate"]


def test_a_derived_metric_with_a_mistake_is_not_reported_again_where_it_is_searched(tmp_path: Path) -> None:
    text = SMALL + '[derived.half]\nvalue = "wall /"\n[find]\nmetric = "half"\n'
    assert [each.split(": ")[1] for each in complaints(tmp_path, text)] == ["derived.half.value"]


def test_a_value_in_place_of_a_table_is_reported_once(tmp_path: Path) -> None:
    assert complaints(tmp_path, 'source = 5\nbenchmark = "x"\n') == [
        "perftrail.toml:1: source: expected a table, not the number 5",
        'perftrail.toml:2: benchmark: expected a table, not the text "x"',
    ]


def test_an_empty_file_lacks_a_source_and_a_benchmark(tmp_path: Path) -> None:
    assert complaints(tmp_path, "") == [
        "perftrail.toml:1: source: missing; where revisions come from",
        "perftrail.toml:1: benchmark: missing; commands to run, with their parameters and metrics",
    ]


def test_an_empty_table_of_benchmarks_is_an_error(tmp_path: Path) -> None:
    text = '[source]\nkind = "directory"\nlocation = "."\n[benchmark]\n'
    assert complaints(tmp_path, text) == [
        "perftrail.toml:4: benchmark: there must be at least one; write [benchmark.NAME] with its command"
    ]


def test_a_derived_metric_must_name_its_benchmark_when_there_are_two(tmp_path: Path) -> None:
    text = SMALL + '[benchmark.other]\ncommand = "true"\n[derived.twice]\nvalue = "2 * wall"\n'
    assert complaints(tmp_path, text) == [
        "perftrail.toml:9: derived.twice.benchmark: missing; choose a benchmark: it or other"
    ]


def test_the_syntax_of_a_derived_metric_is_checked_also_without_its_benchmark(tmp_path: Path) -> None:
    text = SMALL + '[benchmark.other]\ncommand = "true"\n[derived.twice]\nvalue = "2 * wall["\n'
    assert [each.split(": ")[1] for each in complaints(tmp_path, text)] == [
        "derived.twice.benchmark",
        "derived.twice.value",
    ]


def test_an_unknown_format_is_not_also_reported_as_a_missing_one(tmp_path: Path) -> None:
    text = SMALL + 'metrics.seconds = { reads = "pybench" }\n'
    (complaint,) = complaints(tmp_path, text)
    assert complaint.split(": ")[1] == "benchmark.it.metrics.seconds.reads"


def test_a_metric_that_two_benchmarks_have_is_ambiguous(tmp_path: Path) -> None:
    text = SMALL + '[benchmark.other]\ncommand = "true"\n[find]\nmetric = "wall"\n'
    assert complaints(tmp_path, text) == [
        'perftrail.toml:10: find.metric: several benchmarks have "wall"; write it.wall or other.wall'
    ]


def test_a_prefix_knows_only_the_parameters_that_every_benchmark_has(tmp_path: Path) -> None:
    text = (
        SMALL + 'parameters.n = [1]\n[benchmark.b]\ncommand = "true"\n[variants.v]\nrun.prefix = ["x{n}"]\n'
    )
    [complaint] = complaints(tmp_path, text)
    assert complaint.startswith("perftrail.toml:11: variants.v.run.prefix: unknown placeholder {n};")


def test_too_many_points_are_refused(tmp_path: Path) -> None:
    axes = "\n".join(f"parameters.p{number} = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" for number in range(30))
    exclude = "\nexclude = [{ p0 = 1 }]"
    find = '\n[find]\nmetric = "wall"'
    for text in (axes, axes + exclude, axes + find):
        assert complaints(tmp_path, f"{SMALL}{text}\n") == [
            "perftrail.toml:7: benchmark.it.parameters: span more than 100000 points; use fewer values"
        ]


def test_a_requirement_is_no_option_of_pip(tmp_path: Path) -> None:
    text = SMALL.replace('"directory"', '"release"').replace('"."', '"pypi:x"\nrequires = ["--index-url=x"]')
    [complaint] = complaints(tmp_path, text)
    assert complaint.startswith(
        'perftrail.toml:4: source.requires: "--index-url=x" is not a valid requirement'
    )


ARCHIVES = """\
[source]
kind = "release"
location = "%s"
archives = [
  { version = "1", file = "a.tgz" },
  { version = "1", file = "", sha256 = "12" },
  { version = "-x", file = "https://x.org/a.zip" },
]
yanked = true
walk = "all"
[benchmark.it]
command = "true"
"""


def test_a_table_of_archives_is_checked_line_by_line(tmp_path: Path) -> None:
    assert complaints(tmp_path, ARCHIVES % ".") == [
        'perftrail.toml:6: source.archives[1].version: "1" occurs twice; remove one of them',
        "perftrail.toml:6: source.archives[1].file: is empty",
        'perftrail.toml:6: source.archives[1].sha256: "12" is not a SHA-256 checksum, which has 64 digits',
        'perftrail.toml:7: source.archives[2].version: "-x": a revision cannot begin with "-"',
        'perftrail.toml:7: source.archives[2].file: "https://x.org/a.zip" is downloaded and needs sha256, '
        "its checksum",
        "perftrail.toml:9: source.yanked: does not apply to archives, only to packages",
        "perftrail.toml:10: source.walk: does not apply to a release source, only to git or fossil",
    ]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("https://x.org/dist", 'source.archives[0].file: "a.tgz" is downloaded and needs sha256'),
        ("ssh://x.org/dist", "is not a valid location of archives"),
        ("pypi:x", "is not a valid location of archives"),
        ("nowhere", "does not exist"),
    ],
)
def test_archives_are_in_a_directory_or_at_a_web_address(
    location: str, expected: str, tmp_path: Path
) -> None:
    assert any(expected in each for each in complaints(tmp_path, ARCHIVES % location))


@pytest.mark.parametrize("name", ["a/b", "..", "a..b", "", "a b", "a\\nb", "\\u202Ea", "x" * 101, ".a", "-a"])
def test_a_benchmark_cannot_have_a_name_that_is_no_good_directory(name: str, tmp_path: Path) -> None:
    reported = complaints(tmp_path, SMALL.replace("benchmark.it", f'benchmark."{name}"'))
    assert len(reported) == 1
    assert "name" in reported[0]
    assert reported[0].isprintable()


@pytest.mark.parametrize("name", ["mt", "MT-2.3", "2d", "a.b", "gcc-13.2+lto", "_x"])
def test_a_benchmark_may_be_named_as_people_name_things(name: str, tmp_path: Path) -> None:
    assert complaints(tmp_path, SMALL.replace("benchmark.it", f'benchmark."{name}"')) == []


def test_a_misspelt_table_hides_no_mistake_in_it(tmp_path: Path) -> None:
    text = SMALL + '[fnid]\nmetrci = "wall"\nbudget = "soon"\n'
    assert complaints(tmp_path, text) == [
        'perftrail.toml:7: fnid: unknown key; did you mean "find"?',
        'perftrail.toml:8: find.metrci: unknown key; did you mean "metric"?',
        'perftrail.toml:9: find.budget: "soon" is not a duration; write seconds, or "500ms", "60s", "10min", "1h30min"',
    ]


def test_a_misspelt_key_beside_the_right_one_is_reported_alone(tmp_path: Path) -> None:
    text = SMALL + '[find]\nmetric = "wall"\nmetrci = "wa"\n'
    assert complaints(tmp_path, text) == [
        'perftrail.toml:9: find.metrci: unknown key; did you mean "metric"?'
    ]


def test_a_key_that_people_expect_is_answered_with_the_right_ones(tmp_path: Path) -> None:
    text = spoiled('kind = "directory"', 'git = "."', text=SMALL) + '[find]\ngood = "v1"\n'
    assert complaints(tmp_path, text) == [
        "perftrail.toml:1: source.kind: missing; kind of the history",
        'perftrail.toml:2: source.git: unknown key; write kind = "git" and location = "…"',
        'perftrail.toml:8: find.good: unknown key; the two ends of the search are source.range = "OLD..NEW"',
    ]
