"""The values that are read from a valid study file."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.errors import StudyError
from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Derived, Metric
from perftrail.model.recipe import PLAIN, Build, Era, Variant, VariantBuild, VariantRun
from perftrail.model.source import Label, Source
from perftrail.model.study import FindPolicy, Invocations, MeasurePolicy, Study
from tests.studyfile.studies import GOOD, SMALL, complaints, read, spoiled, write


def test_the_example_of_the_design_comes_to_this_study(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == Study(
        title="When did threads start to scale?",
        file=str(tmp_path / "perftrail.toml"),
        directory=str(tmp_path),
        source=Source(
            kind="git",
            location=str(tmp_path / "repository"),
            range="v1.0..v2.0",
            touching=("src/alloc.c",),
            label=Label(file="src/version.h", pattern='VERSION "([^"]+)"'),
        ),
        build=Build(
            directory="unix",
            steps=("./configure --disable-shared", "make -j{cpus}"),
            env={"CFLAGS": "-O2"},
            timeout_seconds=600.0,
            outputs=("unix/libtcl*.a",),
            when=(Era(range="..v1.2", steps=("./configure", "make")),),
        ),
        variants={
            "plain": Variant(),
            "pooled": Variant(build=VariantBuild(env={"CFLAGS": "-O2 -DPOOLED"})),
            "jemalloc": Variant(rebuild=False, run=VariantRun(env={"LD_PRELOAD": "libjemalloc.so.2"})),
        },
        benchmarks={
            "mt": Benchmark(
                command="{out}/mt -t {threads} -s {size}",
                build=("cc -O2 -o {out}/mt {study}/mt.c {build}/unix/libtcl*.a -lm -lpthread",),
                parameters={"threads": (1, 2, 4, 8), "size": (100000,)},
                exclude=({"threads": 8, "variant": "plain"},),
                timeout_seconds=60.0,
                memory_limit_bytes=2 << 30,
                give_up=True,
                metrics={"real": Metric(pattern="REAL TIME=([0-9.]+)", unit="s")},
            )
        },
        derived={
            "ratio": Derived(benchmark="mt", value="real[threads=2] / real[threads=8]", better="higher")
        },
        measure=MeasurePolicy(invocations=Invocations(least=5, most=30)),
        find=FindPolicy(metric=("ratio",), threshold=0.05, confidence=0.99),
    )


def test_a_study_that_says_little_has_a_title_and_one_variant(tmp_path: Path) -> None:
    study = read(tmp_path, SMALL)
    assert study.title == tmp_path.name
    assert dict(study.variants) == {PLAIN: Variant()}
    assert study.source.location == str(tmp_path)


def test_a_derived_metric_belongs_to_the_only_benchmark(tmp_path: Path) -> None:
    assert read(tmp_path, spoiled('benchmark = "mt"\n', "")).derived["ratio"].benchmark == "mt"


def test_a_study_is_named_by_its_directory_or_its_file(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    assert studyfile.load(str(tmp_path)) == studyfile.load(str(file))


def test_a_relative_path_gives_an_absolute_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, SMALL)
    monkeypatch.chdir(tmp_path)
    assert studyfile.load("perftrail.toml").directory == str(tmp_path)
    assert studyfile.load(".").directory == str(tmp_path)


def test_messages_name_the_file_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "")
    monkeypatch.chdir(tmp_path)
    for path in (".", "perftrail.toml", str(tmp_path)):
        with pytest.raises(StudyError, match=r"^perftrail\.toml:1: source: missing"):
            studyfile.load(path)


def test_the_nearest_study_file_upwards_is_found(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert studyfile.find_upwards(str(deep)) == str(file)
    (tmp_path / "a" / "perftrail.toml").write_text(SMALL)
    assert studyfile.find_upwards(str(deep)) == str(tmp_path / "a" / "perftrail.toml")


def test_the_study_of_a_command_line_belongs_to_the_directory_of_its_results(tmp_path: Path) -> None:
    (tmp_path / "inside" / ".perftrail").mkdir(parents=True)
    file = tmp_path / "inside" / ".perftrail" / "study.toml"
    file.write_text(SMALL)
    below = tmp_path / "inside" / "further"
    below.mkdir()
    assert studyfile.find_upwards(str(below)) == str(file)
    study = studyfile.load(str(file))
    assert (study.directory, study.title, study.source.location) == (
        str(tmp_path / "inside"),
        "inside",
        str(tmp_path / "inside"),
    )
    # a study file, also one further up, comes first
    write(tmp_path, SMALL)
    assert studyfile.find_upwards(str(below)) == str(tmp_path / "perftrail.toml")


def test_without_a_study_file_upwards_there_is_none() -> None:
    assert studyfile.find_upwards("/proc/self") is None


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_byte_order_mark_and_dos_lines_do_not_matter(mark: str, newline: str, tmp_path: Path) -> None:
    assert read(tmp_path, mark + GOOD.replace("\n", newline)) == read(tmp_path, GOOD)
    bad = mark + spoiled("precision = 0.02", "precision = 2").replace("\n", newline)
    assert complaints(tmp_path, bad)[0].startswith("perftrail.toml:48: measure.precision")


@pytest.mark.parametrize(
    ("kind", "location"),
    [
        ("git", "https://example.org/x.git"),
        ("git", "ssh://git@example.org/x.git"),
        ("git", "git@example.org:x/y.git"),
        ("fossil", "https://core.tcl-lang.org/tcl"),
        ("release", "pypi:typing_extensions"),
    ],
)
def test_an_address_is_taken_as_it_is(kind: str, location: str, tmp_path: Path) -> None:
    text = SMALL.replace('"directory"', f'"{kind}"').replace('"."', f'"{location}"')
    assert read(tmp_path, text).source.location == location


def test_a_location_in_the_home_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read(tmp_path, SMALL.replace('"."', '"~/repository"')).source.location == str(
        tmp_path / "repository"
    )


@pytest.mark.parametrize(
    ("written", "meant"), [('"5..30"', (5, 30)), ('"60..60"', (60, 60)), ("60", (60, 60)), ('"7"', (7, 7))]
)
def test_invocations_are_a_range_or_a_number(written: str, meant: tuple[int, int], tmp_path: Path) -> None:
    found = read(tmp_path, f"{SMALL}[measure]\ninvocations = {written}\n").measure.invocations
    assert (found.least, found.most) == meant


def test_a_fraction_is_a_number_or_a_percentage(tmp_path: Path) -> None:
    text = f'{SMALL}[measure]\nprecision = "1.5 %"\n[find]\nthreshold = "3%"\nconfidence = 0.95\n'
    study = read(tmp_path, text)
    assert (study.measure.precision, study.find.threshold, study.find.confidence) == (0.015, 0.03, 0.95)


def test_a_budget_is_a_duration_and_two_numbers(tmp_path: Path) -> None:
    text = f'{SMALL}[find]\nbudget = "30min"\nbudget_invocations = 40\nbudget_builds = 9\n'
    find = read(tmp_path, text).find
    assert (find.budget_seconds, find.budget_invocations, find.budget_builds) == (1800.0, 40, 9)


@pytest.mark.parametrize(
    "line",
    [
        "command = \"awk '{ print $1 } {x[$1]++} END {for(i in x){print x[i]}}' /dev/null\"",
        "command = \"sh -c 'echo ${HOME} ${A:-${B}} {{literal}} {} {a,b}'\"",
        'command = "echo {n} | tr a b"\nshell = true\nparameters.n = [1]',
        "command = \"echo {n} {n,m} | awk '{n = 2} {n++}'\"\nshell = true\nparameters.n = [1]",
        "command = \"echo '|'\"",
        "command = '''echo '{\"a\": {\"b\": 1}}' '''",
    ],
)
def test_braces_that_are_no_placeholders_are_left_alone(line: str, tmp_path: Path) -> None:
    assert complaints(tmp_path, SMALL.replace('command = "true"', line)) == []


def test_values_of_a_parameter_keep_their_types(tmp_path: Path) -> None:
    study = read(tmp_path, f'{SMALL}parameters = {{ a = [1, 0.5, "x"] }}\n')
    assert [type(value) for value in study.benchmarks["it"].parameters["a"]] == [int, float, str]


def test_release_keys_are_read(tmp_path: Path) -> None:
    text = SMALL.replace('"directory"', '"release"').replace(
        '"."',
        '"pypi:packaging"\nrange = "20.0..24.1"\nrequires = ["numpy>=1.26", "six"]\n'
        'index = "https://example.org/simple"\nprereleases = true\nyanked = true',
    )
    source = read(tmp_path, text).source
    assert source.requires == ("numpy>=1.26", "six")
    assert (source.index, source.prereleases, source.yanked) == ("https://example.org/simple", True, True)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"ratio"', ("ratio",)),
        ('["ratio", "real[threads=2]"]', ("ratio", "real[threads=2]")),
        ('"works"', ("works",)),
    ],
)
def test_metrics_to_find_are_one_or_several(written: str, meant: tuple[str, ...], tmp_path: Path) -> None:
    assert read(tmp_path, spoiled('metric = "ratio"', f"metric = {written}", text=GOOD)).find.metric == meant


def test_squashed_branches_are_linked_to_what_they_went_into(tmp_path: Path) -> None:
    link = '[[source.link]]\nbranch = "topic"\nmerge = "v1.5"\n[build]\n'
    study = read(tmp_path, spoiled("[build]\n", link, text=GOOD))
    assert [(each.branch, each.merge) for each in study.source.link] == [("topic", "v1.5")]


def test_a_wrong_metric_of_searches_is_no_mistake_for_a_command_that_names_its_own(tmp_path: Path) -> None:
    file = write(tmp_path, f'{SMALL}\n[find]\nmetric = "no"\n')
    with pytest.raises(StudyError, match=r"find\.metric"):
        studyfile.load(str(file))
    assert studyfile.load(str(file), searched=False).find.metric == ()
    other = write(tmp_path, f'{SMALL}\n[find]\nmetric = "no"\nvariant = "no"\n')
    with pytest.raises(StudyError, match=r"find\.variant"):
        studyfile.load(str(other), searched=False)
