"""A real git repository with an old release and fixes on its trunk, and a study of their gains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sources.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = """\
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "table.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;

static void add(unsigned long value)
{
    LOCKS_BEGIN
    sum += value;
    LOCKS_END
}

int main(int count, char **words)
{
    int threads = count > 1 ? atoi(words[1]) : 1;
    unsigned long steps = threads == 1 ? ALONE : TOGETHER;
    for (unsigned long step = 0; step < steps; step++)
        add(step);
    printf("steps %lu\\n", steps);
    return 0;
}
"""

STUDY = """\
[study]
title = "Can the old release have it?"

[source]
kind = "git"
location = "{repository}"

[build]
steps = ["make"]
pin = false
outputs = ["work"]

[[build.when]]
range = "..v1.0"
env = {{ ERA = "old" }}

[benchmark.work]
command = "{{build}}/work {{threads}}"
parameters = {{ threads = [1, 8] }}
metrics = {{ steps = {{ pattern = 'steps ([0-9]+)' }} }}
timeout = "20s"

[derived.ratio]
value = "steps[threads=1] / steps[threads=8]"
better = "higher"

[measure]
invocations = "3..30"
warmups = 0

[find]
metric = "ratio"
"""

NO_LOCK = "#define LOCKS_BEGIN\n#define LOCKS_END\n"
LOCK = "#define LOCKS_BEGIN pthread_mutex_lock(&mutex);\n#define LOCKS_END pthread_mutex_unlock(&mutex);\n"


def table(*, alone: int, together: int, lock: bool = False, note: str = "") -> str:
    """Return the header that sets the steps of the program: of one thread (`alone`) and of several (`together`)."""
    return (
        f"/* number of steps */\n{note}\n#define ALONE {alone}ul\n\n/* gap 1 */\n/* gap 2 */\n/* gap 3 */\n\n"
        f"#define TOGETHER {together}ul\n\n{LOCK if lock else NO_LOCK}"
    )


def files(header: str, **others: str) -> Mapping[str, str]:
    """Return the files of one revision."""
    makefile = "work: work.c table.h\n\tcc -O2 -pthread -o $@ work.c\n"
    return {"work.c": PROGRAM, "table.h": header, "Makefile": makefile, **others}


@dataclass(frozen=True)
class Releases:
    """A repository and its commits by their role: `fix` applies to the release, `tangled` conflicts with it."""

    repository: Repository
    release: str
    fix: str
    after_fix: str
    tangled: str
    merge: str


def make_releases(path: Path) -> Releases:
    """Commit an old release, a fix, a change next to the fixed lines, a second fix there, and a merged fix.

    From the release to the fix, 8 threads do half of the work, and one thread a tenth more.
    """
    repository = Repository(path)
    repository.commit(files(table(alone=100_000, together=100_000)), subject="begin")
    release = repository.commit(
        files(table(alone=100_000, together=100_000), NEWS="1.0"), subject="release 1.0"
    )
    repository.tag("v1.0", release)
    repository.commit(
        files(table(alone=100_000, together=100_000), NEWS="after 1.0"), subject="$(touch pwned)"
    )
    fixed = table(alone=110_000, together=50_000)
    fix = repository.commit(
        files(fixed, NEWS="after 1.0"), subject="\x1b[31mShare the table\u202e among threads"
    )
    repository.tag("v2.0", fix)
    noted = table(alone=110_000, together=50_000, note="/* counted twice */")
    after_fix = repository.commit(files(noted, NEWS="after 1.0"), subject="Say what is counted")
    faster = table(alone=60_000, together=50_000, note="/* counted once */")
    tangled = repository.commit(files(faster, NEWS="after 1.0"), subject="Count once")
    side = repository.commit(
        files(table(alone=100_000, together=40_000), NEWS="1.0"),
        parents=[release],
        branch="side",
        subject="one",
    )
    side = repository.commit(
        files(table(alone=100_000, together=25_000), NEWS="1.0"), branch="side", subject="two"
    )
    merged = files(table(alone=60_000, together=25_000, note="/* counted once */"), NEWS="after 1.0")
    merge = repository.commit(merged, parents=[tangled, side], subject="Merge the side branch")
    return Releases(
        repository=repository, release=release, fix=fix, after_fix=after_fix, tangled=tangled, merge=merge
    )


def write_study(directory: Path, releases: Releases, text: str = STUDY) -> Path:
    """Write a study of the releases into a new directory."""
    directory.mkdir()
    file = directory / "perftrail.toml"
    file.write_text(text.format(repository=releases.repository.path))
    return file
