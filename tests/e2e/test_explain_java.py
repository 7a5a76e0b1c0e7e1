"""The responsible method of a Java program, by stacks that Flight Recorder samples in both builds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.needs import needs
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = [pytest.mark.slow("starts"), pytest.mark.long]

PROGRAM = """\
package words;

public class Main {
    static long mixed(long value) { for (int i = 0; i < %d; i++) value = value * 31 + (value >>> 7); return value; }
    static long other(long value) { for (int i = 0; i < 400; i++) value = value * 17 + (value >>> 9); return value; }
    public static void main(String[] arguments) {
        long sum = 0;
        for (int i = 0; i < 150000; i++) sum += mixed(i) + other(i);
        System.out.println(sum);
    }
}
"""
STUDY = """\
[source]
kind = "git"
location = "../repository"
[build]
steps = ["javac -d classes Main.java"]
outputs = ["classes"]
[benchmark.words]
command = "java -XX:TieredStopAtLevel=1 -cp {build}/classes words.Main"
[measure]
quiet_threshold = 100
"""


@needs("javac")
def test_the_method_that_works_more_is_named(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for turns in (400, 1600):
        repository.commit({"Main.java": PROGRAM % turns}, subject=f"{turns} turns")
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "perftrail.toml").write_text(STUDY)
    done = start("explain", "HEAD", tmp_path / "study", "--invocations", "3", "--json")
    assert done.returncode == 0, done.stderr
    [point] = json.loads(done.stdout)["points"]
    functions = point["functions"]
    assert functions["method"] == "jfr", done.stdout
    first = functions["functions"][0]["function"]
    assert (first["name"], first["file"]) == ("words.Main.mixed(long)", "words/Main.java"), functions[
        "changes"
    ]
