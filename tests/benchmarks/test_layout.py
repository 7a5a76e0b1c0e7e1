"""The benchmark of layout noise: edits that change only the layout, the peers' statistics, and a campaign."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.layout import __main__ as campaign
from benchmarks.layout import history as histories
from benchmarks.layout.c_source import read_source
from benchmarks.layout.counts import Entry, rate, rows
from benchmarks.layout.edits import KINDS, slower
from benchmarks.layout.history import History
from benchmarks.layout.methods import WELCH_RUNS, Perftrail, pinpoint, welch
from benchmarks.layout.projects import LINK_ORDER, PROJECTS, Project
from tests.starting import start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.layout.counts import Truth
    from benchmarks.layout.methods import Floats

SOURCE = r"""
#include <stdio.h>
#define BRACE {
/* int old(void) { return 1; } */
struct pair { int a, b; };
static const char *const names[] = { "one {", "two \" }", "three // not a comment" };
static int added(struct pair both); // declared
__attribute__((noinline)) static int
added(struct pair both)
{
    return both.a + both.b; /* } */
}
#ifdef NEVER
static int added(struct pair both) { return '}'; }
#else
static int twice(int value) { return 2 * value; }
long squared(long value) { return value * value; }
int (thrice)(int value) { if (value < 0) { puts("a text that nobody sees"); } return 3 * value; }
#endif
__attribute__((noinline)) static long many(long count)
{
    long sum = 0;
#if 1
    for (long each = 0; each < count; each++)
        sum += each % 7;
#endif
    return sum;
}
int main(int count, char **words)
{
    if (count > 5)
        printf("usage: %s of this program\n", words[0]);
    struct pair both = { twice(count), thrice(count) };
    printf("%d %ld %s\n", added(both), many(1000), names[0]);
    return 0;
}
"""

TINY = Project(
    sources=("*.c",), main="tiny.c", arguments="{input} {input}", work=lambda: b"", printing="{input}"
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    directory = tmp_path / "clone"
    directory.mkdir()
    (directory / "tiny.c").write_text(SOURCE)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "it"]):
        identity = ["-c", "user.name=A U Thor", "-c", "user.email=author@example.invalid"]
        subprocess.run(["git", "-C", directory, *identity, *words], check=True)
    return directory


def built(directory: Path, text: str) -> str:
    """Compile a text and give what it prints."""
    (directory / "it.c").write_text(text)
    subprocess.run(["cc", "-O2", "-w", "-o", directory / "it", directory / "it.c"], check=True)
    return subprocess.run([directory / "it"], check=True, capture_output=True, text=True).stdout


def test_functions_are_found_among_all_else_that_has_braces() -> None:
    functions = read_source(SOURCE).functions
    assert [each.name for each in functions] == [
        "added", "added", "twice", "squared", "thrice", "many", "main",
    ]  # fmt: skip
    assert functions[0].prototype == "__attribute__((noinline)) static int added(struct pair both)"
    assert all(SOURCE[each.body - 1] == "{" and SOURCE[each.end - 1] == "}" for each in functions)
    blocks = [each.block for each in functions]
    assert blocks[0] == blocks[5] == blocks[6] == ()
    assert blocks[2] == blocks[4] != blocks[1]


def test_texts_are_found_but_not_those_of_comments_and_the_preprocessor() -> None:
    text = '#include "a b.h"\n/* "no no" */ char *a = "one \\" two"; char b = \'"\'; // "no"\n'
    assert [text[start:end] for start, end in read_source(text).texts] == ['"one \\" two"']


def test_a_file_whose_conditions_cut_through_braces_is_left_alone() -> None:
    assert not read_source("#if A\nint f(void) {\n#else\nint f(int a) {\n#endif\nreturn 1; }\n").functions


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_compiles_and_behaves_alike(tmp_path: Path, kind: str) -> None:
    expected = built(tmp_path, SOURCE)
    text, sizes = SOURCE, set()
    for seed in range(8):
        edited = KINDS[kind](text, random.Random(seed))
        assert edited is not None
        assert edited != text
        text = edited
        sizes.add(len(text))
        assert built(tmp_path, text) == expected
    assert len(sizes) > 4


def test_a_file_without_a_place_for_an_edit_is_reported() -> None:
    assert all(edit("int main;\n", random.Random(1)) is None for edit in (*KINDS.values(), _slower))


def _slower(text: str, _: random.Random) -> str | None:
    return slower(text, 5)


def test_a_slower_program_computes_first_and_prints_the_same(tmp_path: Path) -> None:
    text = slower(SOURCE, 123456)
    assert text is not None
    assert "step < 123456ULL" in text
    assert text.index("perftrail_busy();") < text.index("if (count > 5)")
    assert built(tmp_path, text) == built(tmp_path, SOURCE)


def test_a_history_changes_only_the_layout_and_resumes(tmp_path: Path, clone: Path) -> None:
    whole = History(TINY, clone, tmp_path / "whole", seed=3)
    for _ in range(6):
        whole.extend(busy=1000)
    assert [each.kind for each in whole.steps[1:4]] == ["dead code", "longer text", "functions reordered"]
    programs = {whole.program(each.commit).read_bytes() for each in whole.steps}
    slow = {whole.program(each.slower).read_bytes() for each in whole.steps[1:]}
    assert len(programs) == 7
    assert len(slow) == 6
    assert not programs & slow
    for each in whole.steps:
        ended = subprocess.run(whole.command(whole.program(each.commit)), check=True, capture_output=True)
        assert ended.stdout == b"15 2997 one {\n"

    for _ in range(3):
        parted = History(TINY, clone, tmp_path / "parted", seed=3)
        parted.extend(busy=1000)
        parted.extend()
    assert [tree(parted, each.commit) for each in parted.steps] == [
        tree(whole, each.commit) for each in whole.steps
    ]


def tree(history: History, commit: str) -> str:
    """Name the content of a commit."""
    repository = history.directory / "repository"
    words = ["git", "-C", str(repository), "rev-parse", f"{commit}^{{tree}}"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout


def test_the_study_s_recipe_makes_the_program_that_the_peers_run(tmp_path: Path, clone: Path) -> None:
    history = History(TINY, clone, tmp_path / "into", seed=3)
    step = history.extend()
    tree = tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", history.directory / "repository", tree], check=True)
    subprocess.run(["sh", "-euc", "\n".join(TINY.steps)], cwd=tree, check=True)
    assert (tree / "program").read_bytes() == history.program(step.commit).read_bytes()
    for line in TINY.relink:
        filled = line.replace("{layout}", "1").replace("{study}", str(history.directory))
        subprocess.run(["sh", "-euc", filled], cwd=tree, check=True)
    assert subprocess.run([tree / "program"], check=True, capture_output=True).stdout == b"5 2997 one {\n"


def test_objects_are_put_into_another_order_as_the_docs_say() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "layout-noise.md"
    assert f"```sh\n{LINK_ORDER}```" in page.read_text()


def test_an_edit_that_shows_is_not_taken(
    tmp_path: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "ATTEMPTS", 5)
    only_shown = '#include <stdio.h>\nint main(void) { puts("some words that are printed"); return 0; }\n'
    (clone / "tiny.c").write_text(only_shown)
    subprocess.run(
        ["git", "-C", clone, "-c", "user.name=A", "-c", "user.email=a@b.invalid", "commit", "-qam", "it"],
        check=True,
    )
    history = History(TINY, clone, tmp_path / "into", seed=1)
    history.extend()
    with pytest.raises(click.ClickException, match="no commit 2 in 5 attempts: longer text"):
        history.extend()
    assert len(history.steps) == 2


def test_a_foreign_directory_is_never_emptied(tmp_path: Path, clone: Path) -> None:
    with pytest.raises(click.ClickException, match="contains something else"):
        History(TINY, clone, clone, seed=1)
    assert (clone / "tiny.c").exists()


class Drawn:
    """Runs that are drawn, for the peers' statistics; the head's are shifted."""

    def __init__(self, rng: np.random.Generator, shift: float) -> None:
        self._base, self._head = rng.normal(1.0, 0.01, (2, 100))
        self._head += shift

    def values(self, base: int, head: int) -> tuple[Floats, Floats]:
        return self._base[:base], self._head[:head]


def drawn(count: int, shift: float) -> Iterator[Drawn]:
    rng = np.random.default_rng(5)
    for _ in range(count):
        yield Drawn(rng, shift)


def test_welch_is_wrong_as_often_as_it_says_and_sees_what_is_there() -> None:
    equal = [welch(*each.values(WELCH_RUNS, WELCH_RUNS)) for each in drawn(1000, 0.0)]
    assert 0.03 < 1 - equal.count("unclear") / 1000 < 0.07
    assert {welch(*each.values(WELCH_RUNS, WELCH_RUNS)) for each in drawn(50, 0.03)} == {"slower"}
    assert {welch(*each.values(WELCH_RUNS, WELCH_RUNS)) for each in drawn(50, -0.03)} == {"faster"}


def test_pinpoint_takes_more_runs_until_it_is_sure_either_way() -> None:
    equal = [pinpoint(each) for each in drawn(500, 0.0)]
    assert 0.003 < sum(each.verdict in ("slower", "faster") for each in equal) / 500 < 0.06
    assert {each.runs for each in equal} == {10, 20, 30}
    large = [pinpoint(each) for each in drawn(50, -0.05)]
    assert {(each.verdict, each.runs) for each in large} == {("faster", 10)}
    between = [pinpoint(each) for each in drawn(200, 0.008)]
    assert sum(each.verdict == "slower" for each in between) > 100
    assert max(each.runs for each in between) == 30


def test_a_share_has_wilson_s_interval() -> None:
    # Wilson (1927); 0 of 10 and 10 of 10 mirror each other
    assert rate(0, 10) == "0.0% [0.0%, 27.8%]"
    assert rate(10, 10) == "100.0% [72.2%, 100.0%]"
    assert rate(5, 10) == "50.0% [23.7%, 76.3%]"
    assert rate(0, 0) == "–"


def entry(project: str, truth: Truth, verdict: str) -> Entry:
    return Entry(
        project=project, number=1, kind="dead code", truth=truth, method="it", verdict=verdict, runs=4, layouts=0,
        seconds=2.0,
    )  # fmt: skip


def test_verdicts_are_counted_against_the_truth_in_each_project_and_in_all() -> None:
    layout = [entry("a", "layout", word) for word in ("slower", "faster", "same", "unclear")]
    real = [entry("b", "slower", word) for word in ("slower", "faster", "unclear")]
    one, other, both = rows([*layout, *real])
    assert one[:4] == ("a", "it", "2", "4")
    assert one[5:9] == ("0", "0", "0", "–")
    assert other[2:8] == ("0", "0", "–", "1", "1", "3")
    assert both[:4] == ("all", "it", "2", "4")
    assert both[5:8] == ("1", "1", "3")
    assert both[-3:] == ("4", "0", "2.0")


def forked(arguments: Sequence[str]) -> str:
    """Run perftrail like the campaign, but in a process that does not import it again."""
    done = start(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow("processor")
def test_a_campaign_runs_every_method_and_resumes(
    tmp_path: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROJECTS, "tiny", TINY)
    monkeypatch.setattr(Perftrail, "_run", staticmethod(forked))
    words = ["--project", f"tiny={clone}", "--into", str(tmp_path / "into"), "--slower", "1", "--pairs", "6"]
    for commits in (1, 2):
        done = CliRunner().invoke(campaign.main, [*words, "--commits", str(commits)])
        assert done.exit_code == 0, done.output
    noted = [json.loads(line) for line in (tmp_path / "into" / "verdicts.jsonl").read_text().splitlines()]
    methods = {each["method"] for each in noted}
    assert {"perftrail", "perftrail, relinked"} < methods
    for method in methods:
        requested = [(each["number"], each["truth"]) for each in noted if each["method"] == method]
        assert requested == [(1, "layout"), (1, "slower"), (2, "layout")]
    assert "perftrail, relinked" in done.output
    refused = CliRunner().invoke(campaign.main, [*words, "--effect", "0.1"])
    assert refused.exit_code == 2
    assert "other settings" in refused.output
