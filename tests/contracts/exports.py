"""The rules of every export format, for the contract of exporters: a new format is one more line of `RULES`."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from pyarrow import parquet  # type: ignore[import-untyped]  # it has no type hints

from perftrail.formats.rows import AFTER, BEFORE
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.exchange import Exported, Value
from perftrail.model.source import Source
from perftrail.model.study import Study
from perftrail.model.subject import Revision, Subject

Files = Mapping[str, bytes]
HOSTILE = "../../x\n\x1b[31m\u202e,\"'{0}: é/=-8"


def sample(
    metric: str, *numbers: float, unit: str = "s", variant: str = "plain", revision: str = "1", **options: Any
) -> Exported:
    """Return the sample of one metric of one subject at one point."""
    label = options.pop("label", f"v{revision}")
    return Exported(
        subject=Subject(
            revision=Revision(id=revision * 40, label=label, time=f"2026-01-0{revision}T00:00:00+00:00"),
            variant=variant,
        ),
        benchmark=options.get("benchmark", "mt"),
        point=Point((("threads", options.get("threads", 1)), ("kind", options.get("kind", "a")))),
        metric=metric,
        unit=unit,
        better=options.get("better", "lower"),
        machine="quiet",
        values=tuple(
            Value(value=each, invocation=number, started=f"2026-02-02T00:00:0{number}+00:00", flags=())
            for number, each in enumerate(numbers)
        ),
        median=sorted(numbers)[len(numbers) // 2],
        low=min(numbers),
        high=max(numbers),
    )


SAMPLES = (
    sample("wall", 0.1234567890123, 0.125, 0.13),
    sample("peak_memory", 1048576.0, 1048577.0, unit="B"),
    sample("rate", 7.0, unit="1/s", better="higher", threads=2),
    sample("real", 0.25, threads=2),
    sample("wall", 0.2, 0.19, variant="pooled"),
    sample("wall", 0.5, revision="2", kind="b c"),
    sample("wall", 1e-09, revision="2", benchmark="other"),
)
HOSTILE_SAMPLES = tuple(
    sample(
        "wall",
        float(revision),
        revision=revision,
        label=HOSTILE,
        benchmark=HOSTILE,
        kind=HOSTILE,
        variant=HOSTILE,
    )
    for revision in "12"
)
STUDY = Study(
    title="a study",
    file="/study/perftrail.toml",
    directory="/study",
    source=Source(kind="git", location="."),
    benchmarks={"mt": Benchmark(command="true")},
)


def documents(files: Files) -> list[Any]:
    """Parse every file as JSON. NaN and infinity, which JSON does not have, are errors."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return [json.loads(each, parse_constant=refuse) for each in files.values()]


def check_csv(files: Files) -> None:
    heading, *cells = csv.reader(io.StringIO(files["samples.csv"].decode()))
    assert {*BEFORE, *AFTER} <= {*heading}
    assert {len(row) for row in cells} == {len(heading)}


def check_json_lines(files: Files) -> None:
    (content,) = files.values()
    assert all({*BEFORE, *AFTER, "point"} == {*json.loads(line)} for line in content.split(b"\n")[:-1])


def check_parquet(files: Files) -> None:
    assert {*BEFORE, *AFTER} <= {*parquet.read_table(io.BytesIO(files["samples.parquet"])).column_names}


def check_hyperfine(files: Files) -> None:
    for each in (result for document in documents(files) for result in document["results"]):
        assert {"command", "mean", "stddev", "median", "user", "system", "min", "max"} < {*each}
        assert len(each["times"]) == len(each["exit_codes"])
        assert each["min"] <= each["median"] <= each["max"]


def check_asv(files: Files) -> None:
    known = json.loads(files["results/benchmarks.json"])
    for name, content in files.items():
        if (parts := name.split("/"))[0] == "results" and len(parts) == 3 and parts[2] != "machine.json":
            result = json.loads(content)
            assert f"results/{parts[1]}/machine.json" in files
            for benchmark, columns in result["results"].items():
                row = dict(zip(result["result_columns"], columns, strict=True))
                assert len(row["result"]) == math.prod(map(len, known[benchmark]["params"]))
                assert row["version"] == known[benchmark]["version"]


def check_bmf(files: Files) -> None:
    for measure in (m for document in documents(files) for each in document.values() for m in each.values()):
        assert {"value"} <= {*measure} <= {"value", "lower_value", "upper_value"}
        assert (
            measure.get("lower_value", -math.inf) <= measure["value"] <= measure.get("upper_value", math.inf)
        )


def check_github_action(files: Files) -> None:
    for each in (entry for document in documents(files) for entry in document):
        assert {"name", "unit", "value"} <= {*each} <= {"name", "unit", "value", "range", "extra"}
        assert isinstance(each["value"], float)


def check_lnt(files: Files) -> None:
    for document in documents(files):
        assert {*document} == {"format_version", "machine", "run", "tests"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", document["run"]["start_time"])
        assert len({test["name"] for test in document["tests"]}) == len(document["tests"])


def check_otava(files: Files) -> None:
    for test in yaml.safe_load(files["otava.yaml"])["tests"].values():
        rows = list(csv.DictReader(io.StringIO(files[test["file"]].decode())))
        columns = {test["time_column"], *test["attributes"], *(m["column"] for m in test["metrics"].values())}
        assert rows
        assert all(columns == {*row} for row in rows)


def check_benchstat(files: Files) -> None:
    """The example of docs/contributing/new-exporter.md."""
    for line in (line for content in files.values() for line in content.decode().split("\n")[:-1]):
        assert re.fullmatch(r"commit: \S+|Unit \S+ better=(lower|higher)|Benchmark\S+ 1 [0-9.e+-]+ \S+", line)


RULES: Mapping[str, Callable[[Files], None]] = {
    "csv": check_csv,
    "jsonl": check_json_lines,
    "parquet": check_parquet,
    "hyperfine": check_hyperfine,
    "asv": check_asv,
    "bmf": check_bmf,
    "github-action-benchmark": check_github_action,
    "lnt": check_lnt,
    "otava": check_otava,
    "benchstat": check_benchstat,
}
"""The function that checks the files of each format by the format's rules."""
