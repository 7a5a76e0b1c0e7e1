"""A comparison in each format: its sentences, what trips the gate, and that hostile text stays escaped."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.build import Failure
from perftrail.model.measurement import Machine
from perftrail.model.metrics import Better
from perftrail.model.subject import Revision
from perftrail.present.gate import (
    BAR_WIDTH,
    bar_limit,
    certainty,
    headline,
    interval_bar,
    levels_words,
    machine,
    next_command,
    row_effect,
)
from perftrail.present.gate_formats import (
    FORMATS,
    GITHUB_COMMENT,
    GITLAB_COMMENT,
    MOST_VISIBLE,
    SIGNS,
    github_annotations,
    marker,
    to_junit,
    to_markdown,
    to_metrics,
    to_plain,
)
from perftrail.present.gate_output import print_gate
from perftrail.present.report.comparisons import compared_sections, compared_verdict
from perftrail.results.gate import (
    ComparedMetric,
    EnvironmentDifference,
    FailedSide,
    FailOn,
    Gate,
    Row,
    SideName,
    levels_of_ratio,
)
from perftrail.stats.comparison import Comparison, Verdict
from perftrail.stats.estimate import Estimate
from tests.json_checked import validate

HOSTILE = ']]>\x1b[31m</b>\n::error::x\n##[debug] @all <script>\u202e| `a` "%" # 1 $(x) www.a.b GH-1 !2 ~"z" %3 \ud800'


def target(
    name: str = "wall", *, better: Better = "lower", unit: str = "s", value: str = "one"
) -> ComparedMetric:
    return ComparedMetric(
        text=name,
        name=f"work.{name}[size={value}]",
        benchmark="work",
        variant="plain",
        point=Point((("size", value),)),
        better=better,
        unit=unit,
    )


def row(effect: float, verdict: Verdict, **of: object) -> Row:
    def lies(value: float) -> Estimate:
        return Estimate(value=value, low=value * 0.99, high=value * 1.01, confidence=0.95, count=20)

    return Row(
        metric=target(**of),  # type: ignore[arg-type] # as the target's
        base=lies(1.0),
        head=lies(effect),
        comparison=Comparison(
            effect=effect,
            low=effect * 0.99,
            high=effect * 1.01,
            confidence=0.9999,
            pairs=20,
            minimum_detectable=0.011,
            verdict=verdict,
            settled=True,
        ),
        pairs=20,
        ratios=(effect,) * 20,
    )


def gate(*rows: Row, fail_on: FailOn = "slower", **changes: object) -> Gate:
    result = Gate(
        title="Is it slower?",
        file="/study/perftrail.toml",
        base=Revision(id="a" * 40, summary="begin"),
        head=Revision(id="b" * 40, summary="go on"),
        rows=rows,
        failed_sides=(),
        fail_on=fail_on,
        confidence=0.99,
        threshold=0.02,
        machine=Machine(id="here", facts={"cpu": "a CPU"}),
        invocations=40,
        fresh=40,
        seconds=1.0,
        finished="2026-11-21T20:00:00.000+00:00",
        repeat="perftrail compare aaaaaaaaaa bbbbbbbbbb",
        find_command="perftrail find --range aaaaaaaaaa..bbbbbbbbbb",
    )
    return replace(result, **changes)  # type: ignore[arg-type] # as the gate's


def hostile() -> Gate:
    failure = Failure(stage="crash", message=HOSTILE, log="/log")
    return gate(
        row(1.2, Verdict.SLOWER, value=HOSTILE),
        row(1.0, Verdict.UNCLEAR, value=HOSTILE),
        row(1.0, Verdict.SAME, value=HOSTILE),
        title=HOSTILE,
        base=Revision(id="a" * 40, label=HOSTILE, summary=HOSTILE),
        head=Revision(id="b" * 40, summary=HOSTILE),
        failed_sides=(
            FailedSide(side="head", variant="plain", benchmark="work", point=HOSTILE, failure=failure),
        ),
        machine=Machine(id="here", facts={"cpu": HOSTILE}),
        notes=(HOSTILE,),
        repeat=f"perftrail compare {HOSTILE}",
        find_command=f"perftrail find {HOSTILE}",
    )


@pytest.mark.parametrize(
    ("fail_on", "trips"),
    [
        ("never", []),
        ("slower", ["slower"]),
        ("unclear", ["slower", "unclear"]),
        ("any", ["slower", "faster", "unclear"]),
    ],
)
def test_what_trips_is_what_was_asked_for(fail_on: FailOn, trips: list[str]) -> None:
    found = gate(
        row(1.2, Verdict.SLOWER),
        row(1.01, Verdict.SLOWER),
        row(0.8, Verdict.FASTER),
        row(1.0, Verdict.SAME),
        row(1.1, Verdict.UNCLEAR),
        fail_on=fail_on,
    )
    text = [(str(each.verdict), each.comparison.effect) for each in found.tripped if each.comparison]
    assert sorted(name for name, _ in text) == sorted(trips)
    assert ("slower", 1.01) not in text  # sure, but less than is worth telling
    assert found.exit_code == (3 if trips else 0)


def test_more_is_worse_only_where_less_is_better() -> None:
    rate = row(1.2, Verdict.SLOWER, name="rate", better="higher", unit="1/s")
    assert (rate.verdict, rate.word) == (Verdict.FASTER, "better")
    memory = row(1.2, Verdict.SLOWER, name="peak_memory", unit="B")
    assert (memory.verdict, memory.word) == (Verdict.SLOWER, "worse")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            gate(row(1.2, Verdict.SLOWER), row(1.0, Verdict.SAME)),
            "gate failed: 1 of 2 metrics worse: work.wall",
        ),
        (gate(row(0.8, Verdict.FASTER)), "gate passed: 1 of 1 metric better: work.wall"),
        (gate(row(1.0, Verdict.SAME)), "gate passed: the same to within 2 %"),
        (
            gate(row(1.0, Verdict.UNCLEAR)),
            "gate passed, but unclear: no change is certain, 1 of 1 metric unclear; a change below 1.1 % could",
        ),
        (
            gate(row(1.017, Verdict.SAME), row(1.0, Verdict.UNCLEAR, name="cpu")),
            "gate passed, but unclear: no change of 2 % or more is certain, 1 of 2 metrics unclear; ",
        ),
        (gate(), "no answer: nothing could be compared"),
        (gate(Row(metric=target(), one_build=True)), "gate passed: the same: the builds are equal"),
        (gate(row(1.2, Verdict.SLOWER), fail_on="never"), "1 of 1 metric worse"),
    ],
)
def test_the_headline_is_the_answer(found: Gate, expected: str) -> None:
    assert headline(found).startswith(expected)


def test_the_comment_tells_what_moved_and_folds_the_rest() -> None:
    comment = to_markdown(gate(row(1.2, Verdict.SLOWER), row(1.0, Verdict.SAME), row(1.0, Verdict.UNCLEAR)))
    assert comment.splitlines()[0] == marker(gate())
    top = comment.partition("<details>")[0]
    assert r"\+20.0 % \[\+18.8, \+21.2\]".replace(" ", "\u00a0") in top
    assert "fails the gate" in top
    assert comment.count("<details>") == 2
    assert "<summary>1 unchanged metric</summary>" in comment
    assert "perftrail find --range aaaaaaaaaa..bbbbbbbbbb" in comment
    assert "find" not in to_markdown(gate(row(1.0, Verdict.SAME))).partition("To repeat it")[2]


def many(count: int, *, value: str = "") -> list[Row]:
    return [
        row(effect, verdict, value=f"{value}{number:040}")
        for effect, verdict in (
            (1.2, Verdict.SLOWER),
            (0.8, Verdict.FASTER),
            (1.0, Verdict.UNCLEAR),
            (1.0, Verdict.SAME),
        )
        for number in range(count)
    ]


def test_of_many_metrics_a_comment_has_the_worst_that_fit_and_counts_the_others() -> None:
    comment = to_markdown(gate(*many(300)))
    assert 60_000 < len(comment) < 65_536
    assert "1,200 metrics of 1 benchmark compared: 300 worse, 300 better, 300 same, 300 unclear." in comment
    shown = [sum(sign in line for line in comment.splitlines()) for sign in SIGNS.values()]
    omitted = re.findall(r"^and (\d+) (?:more )?metrics for which a comment has no space$", comment, re.M)
    assert shown[0] > 0
    assert sum(shown) + sum(map(int, omitted)) == 1_200
    assert list(re.findall("<summary>(.*)</summary>", comment)) == [
        "580 more changed metrics",
        "300 unclear metrics",
        "300 unchanged metrics",
    ]
    assert comment.partition("<details")[0].count("🔴") == MOST_VISIBLE


@pytest.mark.parametrize("count", [1, 40, 400])
@pytest.mark.parametrize("longest", [GITHUB_COMMENT, GITLAB_COMMENT])
def test_a_comment_never_exceeds_the_servers_limit_and_closes_every_fold(count: int, longest: int) -> None:
    failure = Failure(stage="crash", message=HOSTILE * 40, log="/log")
    side = FailedSide(side="head", variant="plain", benchmark="work", point=HOSTILE, failure=failure)
    found = gate(
        *many(count, value=HOSTILE * 5),
        failed_sides=(side,) * count,
        notes=(HOSTILE * 40,) * count,
        repeat="perftrail compare " + "x" * 100_000,
        differences=(EnvironmentDifference(name=HOSTILE * 40),) * count,
    )
    comment = to_markdown(found, longest=longest)
    assert len(comment.encode("utf-16-le")) // 2 <= longest
    assert comment.count("<details") == comment.count("</details>")
    assert comment.count("~~~~~~~~") % 2 == 0
    rows = [line for line in comment.splitlines() if line.startswith("| ") and "---" not in line]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {8}


def test_a_comment_names_what_differs_besides_the_program() -> None:
    found = gate(
        row(1.2, Verdict.SLOWER),
        tools=("cc: gcc 12.2.0", "ld: GNU ld 2.40"),
        differences=(
            EnvironmentDifference(name="recipe", base="make -j4", head="cmake --build ."),
            EnvironmentDifference(name="cc", base="cc: gcc 12", head="cc: gcc 13"),
            EnvironmentDifference(name="sub/Cargo.lock"),
        ),
    )
    comment = to_markdown(found).replace("\\", "")
    assert (
        "⚠️ Not only the program differs: its recipe does: base `make -j4`, head `cmake --build .`" in comment
    )
    assert "⚠️ Not only the program differs: base was built with cc: gcc 12, head with cc: gcc 13" in comment
    assert comment.count("sub/Cargo.lock differs") == 1
    assert "- Tools, the same for base and head: gcc 12.2.0, GNU ld 2.40" in comment
    plain = to_plain(found)
    assert "note the head may use other dependencies: sub/Cargo.lock differs" in plain
    assert "tools gcc 12.2.0, GNU ld 2.40" in plain
    many = tuple(EnvironmentDifference(name=f"{module}/pom.xml") for module in "abcd")
    line = "note the head may use other dependencies: a/pom.xml, b/pom.xml, c/pom.xml and other files differ"
    assert to_plain(replace(found, differences=many)).count("may use other") == 1
    assert line in to_plain(replace(found, differences=many))
    assert json.loads(FORMATS["json"](found))["differences"][2] == {
        "name": "sub/Cargo.lock",
        "base": "",
        "head": "",
    }


@pytest.mark.parametrize("effect", [0.1, 0.8, 1.0, 1.02, 1.2, 50.0])
def test_a_change_is_drawn_on_its_side_of_the_middle(effect: float) -> None:
    drawn = interval_bar(row(effect, Verdict.UNCLEAR), 0.25)
    assert len(drawn) == BAR_WIDTH
    if effect != 1.0 and 0.8 <= effect <= 1.2:
        column = drawn.index("●")
        assert (column > BAR_WIDTH // 2) == (effect > 1.0)


def test_nothing_hostile_leaves_its_place_in_markdown() -> None:
    comment, *blocks = re.split(r"^~~~~~~~~(?:sh)?\n", to_markdown(hostile()), flags=re.M)[::2]
    comment += "".join(blocks)  # code blocks are printed verbatim
    assert not re.search(
        r"(?<!\\)<(?!/?(details|summary|sub)\b|details open|!-- perftrail compare [0-9a-f]{16} -->)", comment
    )
    assert "@all" not in comment
    assert "\x1b" not in comment
    assert "\u202e" not in comment
    assert "##[" not in comment
    read = comment.replace("\\", "")  # as it is once GitHub or GitLab took the escapes away
    assert not re.search(r"www\.|GH-1|!2|~\"z|%3", read)
    assert not any(line.lstrip().startswith("::") for line in comment.splitlines())
    rows = [line for line in comment.splitlines() if line.startswith("| ") and "---" not in line]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {8}
    comment.encode()


@pytest.mark.parametrize(("effect", "ends"), [(1.02, "−8 % to +8 %"), (3.0, "−75 % to +300 %")])
def test_the_ends_of_the_drawn_line_are_changes_that_there_can_be(effect: float, ends: str) -> None:
    assert f"Each chart spans {ends};" in to_markdown(gate(row(effect, Verdict.SLOWER)))


def test_nothing_hostile_leaves_its_place_in_xml() -> None:
    root = ET.fromstring(to_junit(hostile()))
    [suite] = root
    assert [case.tag for case in suite].count("testcase") == 4
    assert suite.get("tests") == "4"
    assert suite.get("failures") == "1"
    assert suite.get("errors") == "1"
    assert suite.get("skipped") == "1"


def failed_side(side: SideName) -> FailedSide:
    failure = Failure(stage="build", message="no such file", log="/log")
    return FailedSide(side=side, variant="plain", benchmark="", point="", failure=failure)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            gate(failed_sides=(failed_side("base"), failed_side("head"))),
            ["base: build: no such file", "head: build"],
        ),
        (gate(), ["nothing could be compared"]),
        (gate(replace(row(1.0, Verdict.UNCLEAR), comparison=None)), ["no answer"]),
    ],
)
def test_no_answer_is_an_error_in_junit_and_in_the_job(found: Gate, expected: list[str]) -> None:
    assert found.exit_code == 1
    suites = ET.fromstring(to_junit(found)).findall("testsuite[@name='gate']")
    [error] = [error for suite in suites for error in suite.iter("error")]
    assert all(text in (error.text or "") for text in expected)
    assert suites[0].get("errors") == "1"
    [annotation] = github_annotations(found, file="perftrail.toml")
    assert "title=no answer::no answer:" in annotation


def test_certain_regressions_come_before_possible_ones() -> None:
    rows = [
        row(0.8, Verdict.FASTER),
        row(1.0, Verdict.SAME),
        row(1.5, Verdict.UNCLEAR),
        row(1.1, Verdict.SLOWER),
    ]
    ordered = [str(each.verdict) for each in sorted(rows, key=lambda each: each.rank)]
    assert ordered == ["slower", "unclear", "same", "faster"]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (gate(Row(metric=target(), one_build=True)), "equal builds need no measuring"),
        (gate(failed_sides=(failed_side("head"),)), "nothing was compared"),
        (
            gate(row(1.0, Verdict.SAME)),
            "count as none (--threshold); a change below 1.1 % could be missed",
        ),
    ],
)
def test_how_sure_it_is_says_why_nothing_was_measured(found: Gate, expected: str) -> None:
    assert certainty(found).endswith(expected)


def test_everything_known_about_the_machine_is_printed() -> None:
    facts = {"cpu": "a CPU", "logical_cpus": "2", "memory_gib": "24", "virtualisation": "unknown"}
    assert machine(gate(machine=Machine(id="here", facts=facts))) == "a CPU, 2 CPUs, 24 GiB (machine here)"


def test_what_does_not_build_is_named() -> None:
    found = gate(failed_sides=(failed_side("head"),))
    assert "- head: build: no such file" in to_markdown(found)
    assert "failed    head: build: no such file" in to_plain(found)
    assert "title=build is broken::" in next(github_annotations(found, file="perftrail.toml"))
    [case] = ET.fromstring(to_junit(found)).iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("build", "build")


def test_a_junit_suite_counts_the_time_of_metrics_with_the_same_invocations_once() -> None:
    rows = [
        replace(row(1.2, Verdict.SLOWER, name=name), seconds=seconds)
        for name, seconds in (("wall", 92.5), ("cpu", 92.5))
    ]
    [suite] = ET.fromstring(to_junit(gate(*rows)))
    assert suite.get("time") == "92.500"


def test_one_change_that_is_far_larger_leaves_the_others_room() -> None:
    rows = [row(3.0, Verdict.SLOWER), row(1.05, Verdict.SLOWER), row(1.06, Verdict.SLOWER)]
    drawn = [interval_bar(each, bar_limit(gate(*rows))) for each in rows]
    assert drawn[0].endswith("▸")
    assert all(BAR_WIDTH // 2 + 2 < each.index("●") < BAR_WIDTH - 1 for each in drawn[1:])


def test_junit_keeps_to_the_order_and_the_attributes_that_the_strictest_schema_wants() -> None:
    for found in (hostile(), gate(row(1.2, Verdict.SLOWER))):
        root = ET.fromstring(to_junit(found))
        assert root.tag == "testsuites"
        for number, suite in enumerate(root):
            assert set(suite.attrib) == {
                *(
                    "id",
                    "package",
                    "name",
                    "timestamp",
                    "hostname",
                    "tests",
                    "failures",
                    "errors",
                    "skipped",
                    "time",
                )
            }
            assert suite.get("id") == str(number)
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
            tags = [each.tag for each in suite]
            assert tags == ["properties", *["testcase"] * (len(tags) - 3), "system-out", "system-err"]
            for case in suite.findall("testcase"):
                assert set(case.attrib) == {"classname", "name", "time"}
                assert len(case) <= 1
                assert all(each.tag in ("skipped", "failure", "error") for each in case)
                assert all("type" in each.attrib for each in case if each.tag != "skipped")


def test_metrics_are_lines_that_cannot_be_broken() -> None:
    lines = to_metrics(hostile()).splitlines()
    assert lines[-1] == "# EOF"
    label = r'[a-z]+="(?:[^"\\\n]|\\["\\n])*"'
    sample = re.compile(
        rf"perftrail_(value|ratio|worse|unclear|minimum_detectable)\{{{label}(,{label})*\}} [0-9.e+-]+"
    )
    samples = [line for line in lines if not line.startswith("#")]
    assert len(samples) == 15
    assert all(sample.fullmatch(line) for line in samples)


def test_annotations_are_commands_of_ours_alone() -> None:
    lines = list(github_annotations(hostile(), file="a,b:c.toml"))
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::error", "::warning"]
    for line in lines:
        assert "\n" not in line
        assert re.match(r"::(error|warning) file=a%2Cb%3Ac\.toml,line=1,title=", line)
        properties = line.partition(" ")[2].partition("::")[0]
        assert properties.count("=") - properties.partition("title=")[2].count("=") == 3


def test_plain_lines_are_one_for_each_metric() -> None:
    lines = to_plain(hostile()).splitlines()
    assert lines[0].startswith("gate failed: 1 of 3 metrics worse")
    assert [line.split()[0] for line in lines[3:6]] == ["slower!", "unclear", "same"]
    assert all(line.isprintable() for line in lines)
    assert not any("##[" in line for line in lines)


def test_json_contains_every_value_with_its_evidence() -> None:
    text = FORMATS["json"](gate(row(1.2, Verdict.SLOWER)))
    validate("compare", text)
    data = json.loads(text)
    [each] = data["comparisons"]
    assert (each["verdict"], each["trips"], each["pairs"]) == ("slower", True, 20)
    assert each["effect"]["value"] == 1.2
    assert (data["tripped"], data["find"]) == (True, "perftrail find --range aaaaaaaaaa..bbbbbbbbbb")


def test_the_next_command_fits_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    slower, unclear = row(1.5, Verdict.SLOWER), row(1.02, Verdict.UNCLEAR)
    for found, reported in (
        (gate(slower), "Next: perftrail find --range aaaaaaaaaa..bbbbbbbbbb    find the culprit"),
        (
            gate(slower, explain_command="perftrail explain bbbbbbbbbb study --only size=1"),
            "Next: perftrail explain bbbbbbbbbb study --only size=1    "
            "show the cause; the base is the parent of the head",
        ),
        (
            gate(unclear),
            f"Next: perftrail compare aaaaaaaaaa bbbbbbbbbb --max-pairs {2 * unclear.pairs}    "
            f"measure up to {2 * unclear.pairs} pairs",
        ),
    ):
        print_gate(found)
        assert " ".join(capsys.readouterr().out.split()).endswith(" ".join(reported.split()))
    assert next_command(gate(noisy(3.0))) is None  # no useful number of pairs leads to a verdict
    certain = certainty(gate(slower))
    assert "could be missed" not in certain


@pytest.mark.parametrize(
    ("base", "ratio"),
    [(0.035, 1.009), (0.62, 1.297), (17.7, 0.83), (123456.0, 1.0123), (0.0099, 1.02), (3.0, 4.4)],
)
def test_levels_agree_with_the_printed_change(base: float, ratio: float) -> None:
    """The quotient of the printed levels rounds to the printed change, also where three digits do not."""
    compared = row(ratio, Verdict.SLOWER, unit="")
    assert compared.base is not None
    assert compared.head is not None
    medians = (
        compared.base.scaled(base),
        compared.head.scaled(base * 1.07),
    )  # of all samples, not of the pairs
    found = levels_of_ratio(*medians, ratio=ratio)
    compared = replace(compared, base=found.base, head=found.head)
    first, second = (float(text) for text in levels_words(compared))
    printed = re.findall(r"[+-]?[\d.]+", row_effect(compared))[0]
    digits = len(printed.partition(".")[2])
    exact = second / first if row_effect(compared).startswith("×") else (second / first - 1.0) * 100.0
    assert f"{exact:.{digits}f}" == printed.removeprefix("+")
    assert levels_words(compared)[0] in to_plain(gate(compared))
    assert levels_words(compared)[1] in to_markdown(gate(compared))


def noisy(least: float, **of: object) -> Row:
    """Return an unclear row whose pairs detect changes of `least` and more."""
    found = row(1.0, Verdict.UNCLEAR, **of)
    assert found.comparison is not None
    return replace(found, comparison=replace(found.comparison, minimum_detectable=least))


def test_a_gate_says_which_change_it_could_miss_and_what_it_needs() -> None:
    """The detectable change falls with the square root of the number of pairs: 2 % needs 4 times those of 4 %."""
    assert headline(gate(noisy(0.0404))) == (
        "gate passed, but unclear: no change is certain, 1 of 1 metric unclear; a change below 4 % could be missed; "
        "to detect 2 %: about 60 more pairs"
    )
    found = gate(noisy(0.0404), noisy(3.0, name="cpu"))
    several = headline(found)
    assert "changes below 4 % to 300 % could be missed, depending on the metric; to detect 2 %: " in several
    assert "about 60 more pairs for work.wall[size=one], more than 1,000 for work.cpu[size=one]" in several
    assert "to detect" not in headline(gate(noisy(0.02)))
    command = next_command(found)
    assert command is not None
    assert command.command == "perftrail compare aaaaaaaaaa bbbbbbbbbb --max-pairs 80"
    assert command.purpose == "measure up to 80 pairs, enough for 1 of 2 unclear metrics"


def test_every_output_states_one_sensitivity() -> None:
    found = gate(noisy(0.1), noisy(0.24, name="cpu"), threshold=0.05)
    statement = "changes below 10 % to 24 % could be missed, depending on the metric"
    for text in (headline(found), certainty(found), to_plain(found), to_junit(found), to_markdown(found)):
        assert statement in text
        assert not re.search("would have been detected|could miss a 5 %", text)


def test_the_next_command_can_give_an_answer_and_states_its_time() -> None:
    """A pair of 20 s for all points of a benchmark; the budget, which ended the comparison, is not repeated, and
    each other option is written once.
    """
    repeat = "perftrail compare a b --threshold 0.05% --budget 40s --max-pairs 2"
    few = row(1.2, Verdict.UNCLEAR)
    assert few.comparison is not None
    first = replace(few.comparison, pairs=1, minimum_detectable=None)
    few = replace(few, pairs=1, seconds=20.0, comparison=first)
    command = next_command(gate(few, repeat=repeat))
    assert command is not None
    needed = 2 * first.needed_pairs
    assert command.command == f"perftrail compare a b --threshold 0.05% --max-pairs {needed}"
    assert command.purpose.startswith(f"measure up to {needed} pairs, about 5 min more")
    slow = [replace(noisy(least, value=str(least)), seconds=200.0) for least in (0.0404, 0.0603)]
    command = next_command(gate(*slow, repeat=repeat))
    assert command is not None  # 60 more pairs take 20 min, the 160 for both metrics almost an hour
    assert command.command == "perftrail compare a b --threshold 0.05% --max-pairs 175"
    assert command.purpose == "measure up to 175 pairs, about 51 min 40 s more"
    slower = [replace(each, seconds=400.0) for each in slow]
    command = next_command(gate(*slower, repeat=repeat))
    assert command is not None
    assert command.purpose == "measure up to 80 pairs, about 40 min more, enough for 1 of 2 unclear metrics"


def test_too_noisy_benchmarks_need_longer_inputs_or_counts(capsys: pytest.CaptureFixture[str]) -> None:
    found = gate(replace(noisy(0.41), seconds=0.2), noisy(0.01, name="cpu"))
    words = (
        "oo noisy here for 2 %: work; use longer inputs (an invocation takes 5 ms), or count instructions instead of "
        'time, in a second benchmark with the same command and counters = ["instructions"]'
    )
    print_gate(found)
    for text in (
        " ".join(capsys.readouterr().out.split()),
        to_markdown(found).replace("\\", ""),
        to_plain(found),
    ):
        assert words in text
    assert "too noisy" not in to_plain(gate(noisy(0.03)))
    assert "too noisy" not in to_plain(gate(noisy(0.41, unit="")))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (gate(row(1.2, Verdict.SLOWER)), "worse by 2 % or more: 1 metric of 1, so exit code 3"),
        (
            gate(row(1.0, Verdict.UNCLEAR)),
            "--fail-on slower fails on a metric that is certainly worse by 2 % or more",
        ),
        (gate(row(1.0, Verdict.UNCLEAR)), ": none, so exit code 0"),
        (gate(row(1.0, Verdict.UNCLEAR), fail_on="unclear"), "fails on an unclear metric"),
        (
            gate(row(0.5, Verdict.FASTER), fail_on="any"),
            "certainly differs by 2 % or more: 1 metric of 1, so exit code 3",
        ),
        (
            gate(row(1.2, Verdict.SLOWER), fail_on="never"),
            "--fail-on never: exit code 0 whatever the verdict",
        ),
        (
            gate(failed_sides=(failed_side("head"),)),
            "exit code 1, because the head fails where the base works",
        ),
        (gate(), "exit code 1, because there is no verdict"),
    ],
)
def test_every_form_states_the_policy_and_the_exit_code(
    found: Gate, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_gate(found)
    for text in (capsys.readouterr().out, to_plain(found), to_markdown(found).replace("\\", "")):
        assert expected in " ".join(text.split())
    data = found.as_json()
    assert data["exit_code"] == found.exit_code


def test_a_failure_names_the_line_of_the_study_and_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    failed = replace(failed_side("head"), study_line="perftrail.toml:7 (build.steps)")
    found = gate(failed_sides=(failed,))
    print_gate(found)
    [annotation] = github_annotations(found, file="perftrail.toml")
    for text in (
        capsys.readouterr().out,
        to_plain(found),
        to_markdown(found).replace("\\", ""),
        to_junit(found),
        annotation,
    ):
        assert "perftrail.toml:7 (build.steps)" in text.replace("%3A", ":")
        assert "/log" in text
    assert found.as_json()["failures"][0]["study_line"] == "perftrail.toml:7 (build.steps)"


def test_noisy_and_discarded_pairs_are_named_by_metric() -> None:
    rows = (
        replace(row(1.0, Verdict.SAME), noisy=3, discarded=2),
        replace(row(1.0, Verdict.SAME, name="cpu"), noisy=1, discarded=2),
        row(1.0, Verdict.SAME, name="cost"),
    )
    reported = to_plain(gate(*rows))
    assert "noisy pairs are used: 3 pairs of work.wall[size=one], 1 pair of work.cpu[size=one]" in reported
    assert "because of other load: 2 pairs of work.wall[size=one], work.cpu[size=one]" in reported
    assert "2 pairs of each metric" in to_plain(gate(*rows[:2]))


def test_certain_changes_come_first_the_largest_first_in_either_direction(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = (
        row(1.18, Verdict.SLOWER, value="a"),
        row(1.16, Verdict.SLOWER, value="b"),
        *(row(1.4, Verdict.UNCLEAR, value=f"u{number}") for number in range(3)),
        row(0.9, Verdict.FASTER, value="c"),
        row(0.02, Verdict.FASTER, value="d"),
    )
    found = gate(*rows, fail_on="never")
    assert headline(found) == (
        "2 of 7 metrics worse, 2 better: work.wall[size=d] × 0.02000 [0.01980, 0.02020], "
        "work.wall[size=a] +18.0 % [+16.8, +19.2], work.wall[size=b] +16.0 % [+14.8, +17.2] and 1 more; "
        "3 of 7 unclear"
    )
    print_gate(found)
    for text in (capsys.readouterr().out, to_markdown(found).replace("\\", "")):
        lines = re.findall(r"^(?:\| \S+ \| )?work\.wall\[size=(\w+)\]", text, re.M)
        assert lines[:4] == ["d", "a", "b", "c"]
        assert "find the culprit of the largest change, work.wall[size=d]" in text
    failing = gate(*rows)
    assert [each.metric.point.values[0][1] for each in failing.changes] == ["a", "b", "d", "c"]
    assert headline(failing).startswith("gate failed: 2 of 7 metrics worse, 2 better: work.wall[size=a] ")
    assert "work.wall[size=d]" in headline(failing)


def test_equal_builds_are_one_line_instead_of_empty_rows(capsys: pytest.CaptureFixture[str]) -> None:
    equal = [Row(metric=target(name), one_build=True) for name in ("wall", "cpu")]
    found = gate(*equal)
    print_gate(found)
    for text in (capsys.readouterr().out, to_markdown(found).replace("\\", "")):
        assert "Equal builds, not measured: work (2 metrics)" in text
        assert "work.wall" not in text


def test_a_verdict_says_what_it_means_relative_to_the_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    """A bound of a certain change is never printed as zero."""
    small = row(1.11, Verdict.SLOWER)
    assert small.comparison is not None
    small = replace(small, comparison=replace(small.comparison, low=1.003, high=1.26))
    found = gate(small, row(1.5, Verdict.SLOWER, name="cpu"), row(0.5, Verdict.FASTER, name="peak_memory"))
    assert row_effect(small) == "+11 % [+0.3, +26]"
    print_gate(found)
    printed = " ".join(capsys.readouterr().out.split())
    for text in (printed, to_markdown(found).replace("\\", "")):
        assert "slower, perhaps by less than 2 %" in text
        assert "slower by 2 % or more, fails the gate" in text
        assert "faster by 2 % or more" in text
        meaning = "worse, but perhaps by less than 2 %, which does not fail the gate: work.wall[size=one]"
        assert meaning in text


def test_layouts_are_named_only_where_they_can_explain_a_difference() -> None:
    def warned(found: Row) -> bool:
        return "memory layouts" in to_plain(gate(found))

    counts = row(1.2, Verdict.SLOWER)
    assert counts.comparison is not None
    counts = replace(counts, comparison=replace(counts.comparison, low=1.2, high=1.2))
    assert warned(row(1.2, Verdict.SLOWER))
    assert not warned(row(1.6, Verdict.SLOWER))
    assert not warned(row(0.6, Verdict.FASTER))
    assert not warned(counts)
    assert not warned(row(1.2, Verdict.SLOWER, name="instructions", unit=""))


def test_markdown_has_the_next_command() -> None:
    text = to_markdown(gate(row(1.2, Verdict.SLOWER)))
    assert "Next: find the culprit:" in text
    assert "perftrail find --range aaaaaaaaaa..bbbbbbbbbb" in text
    assert "--max-pairs 80" in to_markdown(gate(noisy(0.0404)))


def test_intervals_state_their_confidence(capsys: pytest.CaptureFixture[str]) -> None:
    """A report also has 95 % intervals of the same change from other samples."""
    found = gate(row(1.2, Verdict.SLOWER), confidence=0.95)
    print_gate(found)
    assert "change [95 % interval]" in capsys.readouterr().out
    assert "change [95 % interval]" in to_markdown(found).replace("\\", "")
    [section] = compared_sections([found])
    assert "change [95 % interval]" in section.tables[0].head


def test_an_unclear_gate_that_passes_is_visible_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    found = gate(row(1.0, Verdict.SAME), noisy(0.04, name="cpu"), noisy(0.09, name="user"))
    assert found.exit_code == 0
    assert headline(found).startswith(
        "gate passed, but unclear: no change is certain, 2 of 3 metrics unclear"
    )
    warning = (
        "2 of 3 metrics are unclear: changes below 4 % to 9 % could be missed, depending on the metric; "
        "--fail-on unclear makes an unclear gate fail"
    )
    print_gate(found)
    cases = ET.fromstring(to_junit(found))
    skipped = [case.get("message", "") for case in cases.iter("skipped")]
    assert len(skipped) == 2
    assert skipped[0].startswith("work.cpu[size=one]: unclear: could miss a change below 4 %, ")
    top = to_markdown(found).partition("<details>")[0].replace("\\", "")
    assert f"⚠️ **{warning}**" in top
    for text in (capsys.readouterr().out, to_plain(found), to_junit(found)):
        assert warning in " ".join(text.split())
    [annotation] = github_annotations(found, file="perftrail.toml")
    assert annotation == f"::warning file=perftrail.toml,line=1,title=unclear::{warning.replace('%', '%25')}"
    assert re.search(r'^perftrail_unclear\{.*metric="cpu".*\} 1\.0$', to_metrics(found), re.M)
    assert re.search(r'^perftrail_minimum_detectable\{.*metric="cpu".*\} 0\.04$', to_metrics(found), re.M)
    text = FORMATS["json"](found)
    validate("compare", text)
    assert json.loads(text)["undecided"] == 2
    assert warning in compared_verdict(found).notes[0]


def test_an_unclear_gate_fails_where_the_policy_says_so() -> None:
    found = gate(noisy(0.04), fail_on="unclear")
    assert found.exit_code == 3
    assert headline(found).startswith("gate failed: no change is certain, 1 of 1 metric unclear")
    assert "⚠️" not in to_markdown(found)
    assert not list(ET.fromstring(to_junit(found)).iter("skipped"))
    assert "2 of 3 metrics unclear" not in headline(gate(row(0.8, Verdict.FASTER)))
    better = gate(row(0.8, Verdict.FASTER), noisy(0.04, name="cpu"))
    assert headline(better).startswith("gate passed, but unclear: 1 of 2 metrics better: ")
    assert headline(better).endswith("; 1 of 2 unclear")


def within(low: float, effect: float, high: float) -> Row:
    """Return a row whose interval is within the threshold."""
    found = row(effect, Verdict.SAME)
    assert found.comparison is not None
    return replace(found, comparison=replace(found.comparison, low=low, effect=effect, high=high))


@pytest.mark.parametrize(
    ("compared", "expected", "first"),
    [
        (within(0.99, 1.0, 1.01), "same within 2 %", "the same to within 2 %, 1 of 1 metric"),
        (
            within(1.002, 1.006, 1.009),
            "differs by less than 2 %",
            "the same to within 2 %, 1 of 1 metric; smaller differences are certain: work.wall[size=one] +0.60 % "
            "[+0.20, +0.90]",
        ),
        (within(1.0, 1.0, 1.0), "same", "the same to within 2 %, 1 of 1 metric"),
        (
            within(1.005, 1.005, 1.005),
            "differs by less than 2 %",
            "the same to within 2 %, 1 of 1 metric; smaller differences are certain: work.wall[size=one] 0.5 % more "
            "in every pair",
        ),
    ],
)
def test_the_same_says_what_is_equal(
    compared: Row, expected: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = gate(compared, fail_on="never")
    print_gate(found)
    printed = capsys.readouterr().out
    assert headline(found) == first
    assert any(line.rstrip().endswith(f"  {expected}") for line in printed.splitlines())
    assert expected in to_markdown(found).replace("\\", "")
    meaning = "Same within 2 %: the whole interval of the change is; the levels may differ by less than that"
    assert (meaning in printed) == (expected == "same within 2 %")
    smaller = (
        re.search(r"--threshold 0\.\d+%    judge the smaller difference, too$", printed, re.M) is not None
    )
    assert smaller == (expected == "differs by less than 2 %")
