"""JMH's suites: the list that the program writes, and the shell lines that start it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from perftrail.errors import FormatError
from perftrail.model.placeholders import fill
from perftrail.model.suite import Suite, SuiteItem
from perftrail.suites import jmh
from perftrail.suites.shell import RUNNERS

LISTING = r"""{"name":"org.sample.Others.both","mode":"avgt","point":{},"jvm":[]}
{"name":"org.sample.Others.fails","mode":"avgt","point":{},"jvm":["-Xmx64m","-Dtext=a;b"]}
{"name":"org.sample.Sums.sum","mode":"avgt","point":{"size":"10","text":"plain"},"jvm":[]}
{"name":"org.sample.Sums.sum","mode":"avgt","point":{"size":"10","text":"it's $HOME {x}"},"jvm":[]}
{"name":"org.sample.Sums.sum","mode":"avgt","point":{"size":"1000","text":"plain"},"jvm":[]}
{"name":"org.sample.Sums.sum","mode":"avgt","point":{"size":"1000","text":"it's $HOME {x}"},"jvm":[]}
{"name":"org.sample.Others.once","mode":"ss","point":{},"jvm":[]}
"""
"""What JmhSuite writes for a project of JMH's Maven archetype, with JMH 1.37."""

SUITE = Suite(kind="jmh", program=("target/benchmarks.jar",), seconds=0.25)


def items(suite: Suite = SUITE) -> dict[str, SuiteItem]:
    return {
        " ".join((each.name, *map(str, each.point.as_dict().values()))): each
        for each in jmh.read_listing(LISTING, suite)
    }


def test_each_combination_of_parameters_is_a_point() -> None:
    assert [(each.name, each.point.as_dict()) for each in jmh.read_listing(LISTING, SUITE)] == [
        ("org.sample.Others.both", {}),
        ("org.sample.Others.fails", {}),
        ("org.sample.Sums.sum", {"size": 10, "text": "plain"}),
        ("org.sample.Sums.sum", {"size": 10, "text": "it's $HOME {x}"}),
        ("org.sample.Sums.sum", {"size": 1000, "text": "plain"}),
        ("org.sample.Sums.sum", {"size": 1000, "text": "it's $HOME {x}"}),
        ("org.sample.Others.once", {}),
    ]


def test_a_request_has_one_word_for_each_parameter() -> None:
    item = items()["org.sample.Sums.sum 10 it's $HOME {x}"]
    assert jmh.request(SUITE, item) == "org.sample.Sums.sum avgt 0.25 size=10 text=it%27s+%24HOME+%7Bx%7D"


def test_values_that_only_look_like_numbers_stay_different_texts() -> None:
    line = '{{"name":"a.B.c","mode":"avgt","point":{{"n":"{}"}},"jvm":[]}}'
    found = jmh.read_listing("\n".join(map(line.format, ("7", "07", "\u0667", "1e3"))), SUITE)
    assert [each.point.as_dict()["n"] for each in found] == [7, "07", "\u0667", "1e3"]


def test_a_cold_start_has_no_resident_process() -> None:
    assert jmh.server(SUITE, items()["org.sample.Others.once"]) == ""
    assert " serve " in jmh.server(SUITE, items()["org.sample.Others.both"])


def test_benchmarks_with_other_options_of_the_jvm_have_another_resident_process() -> None:
    plain, other = items()["org.sample.Others.both"], items()["org.sample.Others.fails"]
    assert jmh.server(SUITE, plain) != jmh.server(SUITE, other)
    assert jmh.server(SUITE, plain) == jmh.server(SUITE, items()["org.sample.Sums.sum 10 plain"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"name":"a","mode":"thrpt","point":{},"jvm":[]}', "mode: must be avgt or ss"),
        ('{"name":"a","mode":"avgt","jvm":[]}', 'has no "point"'),
        ("Picked up _JAVA_OPTIONS", "line 1: is not valid JSON"),
    ],
)
def test_another_output_is_not_a_listing(line: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        jmh.read_listing(line, SUITE)


class Build:
    """A build with a jar, and a JDK whose programs write what they were started with."""

    JAVA = """\
#!/bin/sh
for last; do :; done
printf '%s\\n' "$@" >>"$LOG"
case " $* " in
*' options '*) printf '%s\\n' '-XX:CompileCommandFile=a b' >"$last"/options ;;
*' list '*) echo listed >"$last" ;;
*' run '*) for each; do file=$previous; previous=$each; done; echo "measured $last" >"$file" ;;
*' serve '*) echo "serves in $PWD" ;;
esac
echo 'a warning of the JVM'
"""

    def __init__(self, path: Path) -> None:
        self.path = path / "the build"
        self.scratch = path / "scratch"
        self.scratch.mkdir(parents=True)
        (self.path / "target").mkdir(parents=True)
        (self.path / "data {x}").mkdir()
        (self.path / "target/benchmarks.jar").touch()
        self.log = path / "log"
        self.home = path / "jdk"
        (self.home / "bin").mkdir(parents=True)
        for name, text in (("java", self.JAVA), ("javac", "#!/bin/sh\n")):
            (self.home / "bin" / name).write_text(text)
            (self.home / "bin" / name).chmod(0o755)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        with resources.as_file(resources.files("perftrail.suites") / "runners") as runners:
            return subprocess.run(
                ["/bin/sh", "-c", fill(line, {"build": str(self.path)}, quote=shlex.quote)],
                cwd=self.scratch,
                env={
                    "PATH": os.environ["PATH"],
                    "JAVA_HOME": str(self.home),
                    RUNNERS: str(runners),
                    "LOG": str(self.log),
                },
                capture_output=True,
                text=True,
                check=False,
            )

    def words(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path)


def test_a_listing_prints_only_what_the_program_writes(build: Build) -> None:
    done = build.run(jmh.listing(SUITE))
    assert (done.returncode, done.stdout) == (0, "listed\n")
    assert done.stderr == "a warning of the JVM\n"


def test_hostile_texts_are_one_word_each(build: Build) -> None:
    hostile = "$(touch hacked); `touch hacked` '{build}' \"%s\" *"
    line = {"name": hostile, "mode": "avgt", "point": {hostile: hostile}, "jvm": [hostile]}
    suite = Suite(kind="jmh", program=SUITE.program, arguments=("-Da={build} b",), path="data {x}")
    [item] = jmh.read_listing(json.dumps(line), suite)
    done = build.run(jmh.command(suite, item))
    assert (done.returncode, done.stdout) == (0, f"measured {jmh.request(suite, item)}\n")
    words = build.words()
    assert hostile in words
    assert "-Da={build} b" in words
    assert "-XX:CompileCommandFile=a b" in words
    assert f"{build.path}/target/benchmarks.jar:{build.scratch}" in words
    assert not list(build.path.rglob("hacked"))
    assert build.run(jmh.server(suite, item)).stderr.splitlines()[-2:] == [
        f"serves in {build.path}/data {{x}}",
        "a warning of the JVM",
    ]


def test_a_build_without_the_jar_prints_nothing_and_cannot_be_listed(build: Build) -> None:
    (build.path / "target/benchmarks.jar").unlink()
    measured = build.run(jmh.command(SUITE, items()["org.sample.Others.both"]))
    assert (measured.returncode, measured.stdout, measured.stderr) == (0, "", "")
    listed = build.run(jmh.listing(SUITE))
    assert listed.returncode == 1
    assert listed.stderr == "the build has no file that matches the program of the suite\n"


def test_the_class_path_has_the_files_of_every_pattern_in_order(build: Build) -> None:
    for name in ("lib/a.jar", "lib/b.jar", "classes/A.class"):
        (build.path / name).parent.mkdir(exist_ok=True)
        (build.path / name).touch()
    suite = Suite(kind="jmh", program=("classes", "lib/*.jar", "missing/*.jar"))
    build.run(jmh.listing(suite))
    names = ("classes", "lib/a.jar", "lib/b.jar")
    assert "".join(f"{build.path}/{name}:" for name in names) + str(build.scratch) in build.words()
