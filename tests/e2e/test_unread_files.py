"""`check --try` observes builds, and proposes files that none of them reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.printing import perftrail, perftrail_here
from tests.needs import needs
from tests.sources.repositories import Repository

pytestmark = [
    pytest.mark.slow("starts"),
    needs("strace"),
]

STUDY = """\
[study]
title = "What does the build read?"

[source]
kind = "git"
location = "{repository}"

[build]
steps = ["make"]
pin = false
outputs = ["work"]
{more}

[benchmark.work]
command = "{{build}}/work"
metrics = {{ steps = {{ pattern = 'steps ([0-9]+)' }} }}
build = ["test -f {{build}}/data/input"]

[measure]
warmups = 0
quiet_threshold = 100
"""

FILES = {
    "work.c": '#include <stdio.h>\n#include "steps.h"\nint main(void) { return printf("steps %d\\n", STEPS) < 0; }\n',
    "steps.h": "#define STEPS 1\n",
    "Makefile": "work: work.c steps.h\n\tcc -o $@ work.c\n",
    "data/input": "1\n",
}


def check(study: Path) -> tuple[str, dict[str, object]]:
    """Try the newest revision; return the printed text, and the JSON about unread files."""
    printed = perftrail("check", study, "--try", "1").stdout
    answer = json.loads(perftrail("check", study, "--try", "1", "--json").stdout)["unread"]
    return printed, answer


def test_files_that_no_build_reads_are_proposed_for_the_study(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(4):
        texts = {
            "ChangeLog": f"{number}\n",
            "docs/a/b.txt": f"{number // 2}\n",
            "docs/c.txt": "c\n",
            "TODO": "x\n",
        }
        repository.commit({**FILES, **texts, "steps.h": f"#define STEPS {1 + number // 3}\n"})
    (tmp_path / "perftrail.toml").write_text(STUDY.format(repository=repository.path, more=""))
    text, unread = check(tmp_path)
    assert unread["unaffected_by"] == ["ChangeLog", "docs"]
    assert unread["revisions"] == 2
    assert "2 of 4 revisions change only such files" in text
    assert 'unaffected_by = ["ChangeLog", "docs"]' in text
    more = 'unaffected_by = ["ChangeLog", "docs"]'
    (tmp_path / "perftrail.toml").write_text(STUDY.format(repository=repository.path, more=more))
    assert "unaffected_by" not in perftrail("check", tmp_path, "--try", "1").stdout


def test_a_build_that_asks_git_is_not_judged(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    makefile = "work: work.c steps.h\n\tgit rev-parse HEAD > version\n\tcc -o $@ work.c\n"
    repository.commit({**FILES, "Makefile": makefile, "NEWS": "1\n"})
    repository.commit({**FILES, "Makefile": makefile, "NEWS": "2\n"})
    (tmp_path / "perftrail.toml").write_text(STUDY.format(repository=repository.path, more=""))
    text, unread = check(tmp_path)
    assert unread["unaffected_by"] == []
    assert "reads git's data" in str(unread["incomplete"])
    assert "unread       not observed: the build reads git's data" in text


def test_a_revision_that_differs_only_in_unread_files_of_an_observed_build_is_not_built(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "repository")
    repository.commit({**FILES, "steps.h": "#define STEPS 2\n", "ChangeLog": "1\n", "docs/a": "1\n"})
    observed = repository.commit({**FILES, "ChangeLog": "1\n", "docs/a": "1\n"})
    (tmp_path / "perftrail.toml").write_text(STUDY.format(repository=repository.path, more=""))
    perftrail("check", tmp_path, "--try", "1")
    builds = tmp_path / ".perftrail" / "builds"
    same = repository.commit({**FILES, "ChangeLog": "2\n", "docs/b": "2\n"}, subject="only documents")
    listed = repository.commit({**FILES, "ChangeLog": "2\n", "docs/b": "2\n", "new.c": "int unused;\n"})
    done = perftrail("run", tmp_path, "-v")
    assert f"{same[:10]} is the same build as {observed[:10]}" in done.stderr
    logs = [file.read_text() for file in (tmp_path / ".perftrail" / "logs").glob("*.log")]
    built = {
        revision
        for revision in (observed, same, listed)
        if any(text.startswith(f"# {revision} ") for text in logs)
    }
    # make lists the names in the root, so a new file there may matter.
    assert built == {observed, listed}
    assert len(list(builds.glob("*/built.json"))) == 3
    shown = json.loads(perftrail_here("show", tmp_path, "--json").stdout)
    assert {row["revision"] for row in shown} >= {observed, same, listed}
    again = perftrail("run", tmp_path, "--json")
    assert json.loads(again.stdout)["invocations"] == 0
