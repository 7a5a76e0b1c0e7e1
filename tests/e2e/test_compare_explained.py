"""`compare --explain`: the functions that made a benchmark slower, in every format, measured in a sandbox."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.needs import needs
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cc -g -O1 -o work main.c total.c"]
pin = false
outputs = ["work"]

[benchmark.work]
command = "{build}/work"

[measure]
quiet_threshold = 100
"""


def program(steps: int) -> dict[str, str]:
    return {
        "total.c": "long total(long count)\n{\n    long sum = 0;\n"
        f"    for (long i = 0; i < count * {steps}; i++)\n        sum += i ^ (sum >> 3);\n    return sum;\n}}\n",
        "main.c": "#include <stdio.h>\nlong total(long count);\n\nint main(void)\n{\n"
        '    printf("%ld\\n", total(1000000));\n    return 0;\n}\n',
    }


@needs_sandbox
@needs("valgrind")
def test_the_function_of_a_slower_benchmark_is_named_in_every_format(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    repository.commit(program(1))
    repository.commit(program(20))
    (tmp_path / "perftrail.toml").write_text(STUDY)
    comment = tmp_path / "comment.md"
    done = start(
        "compare",
        "HEAD~1",
        "HEAD",
        str(tmp_path),
        "--metric",
        "cpu",
        "--explain",
        "--sandbox",
        "--json",
        "--also",
        f"github={comment}",
    )
    assert done.returncode == 0, done.stderr
    compared = json.loads(done.stdout)
    assert compared["verdict"] == "slower"
    (why,) = compared["why"]
    assert why.startswith("work: +")
    assert re.search(r"in total \(total\.c:\d\): 20\.0× the instructions", why), why
    assert "Why:\n\n- work: " in comment.read_text()
