"""The git source on real repositories: order, walks, ranges, labels, hostile names, kills."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.launcher import Launcher
from perftrail.model.source import Label
from perftrail.model.source import Source as Asked
from perftrail.model.subject import Revision
from perftrail.sources.git import GitSource
from tests.sources.repositories import Repository

Open = Callable[..., GitSource]
"""Opens the test's repository, or another location; everything else as keys of the study's source."""


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with Launcher() as started:
        yield started


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def opened(tmp_path: Path, launcher: Launcher, repository: Repository) -> Open:
    def open_it(location: object = None, cache: str = "cache", **asked: Any) -> GitSource:
        where = str(location or repository.path)
        return GitSource(
            Asked(kind="git", location=where, **asked), cache=str(tmp_path / cache), starter=launcher
        )

    return open_it


def ids(revisions: tuple[Revision, ...]) -> list[str]:
    return [revision.id for revision in revisions]


def line(repository: Repository, count: int) -> list[str]:
    return [repository.commit({"a": f"{number}"}, subject=f"change {number}") for number in range(count)]


@pytest.fixture
def merged(repository: Repository) -> dict[str, str]:
    """Two side branches, one merged into main at m and one into the first side branch."""
    made = {}
    made["a"] = repository.commit({"f": "a"}, subject="a")
    made["b"] = repository.commit({"f": "b"}, subject="b")
    made["x"] = repository.commit({"f": "a", "x": "1"}, subject="x", branch="side", parents=[made["a"]])
    made["i"] = repository.commit({"f": "a", "i": "1"}, subject="i", branch="inner", parents=[made["x"]])
    made["n"] = repository.commit(
        {"f": "a", "x": "1", "i": "1"}, subject="n", branch="side", parents=[made["x"], made["i"]]
    )
    made["m"] = repository.commit({"f": "b", "x": "1", "i": "1"}, subject="m", parents=[made["b"], made["n"]])
    made["c"] = repository.commit({"f": "c", "x": "1", "i": "1"}, subject="c")
    return made


def test_order_is_topological_whatever_the_dates_say(opened: Open, repository: Repository) -> None:
    dates = [1_600_000_000, 1_000_000_000, 1_650_000_000, 5, 1_500_000_000]
    made = [repository.commit({"a": f"{date}"}, date=date) for date in dates]
    assert ids(opened(walk="all").history()) == made
    assert ids(opened(walk="first-parent").history()) == made


def test_first_parent_stays_on_the_main_line(opened: Open, merged: dict[str, str]) -> None:
    assert ids(opened(walk="first-parent").history()) == [merged[name] for name in "abmc"]


def test_all_walks_into_side_branches_parents_first(opened: Open, merged: dict[str, str]) -> None:
    history = opened(walk="all").history()
    assert sorted(ids(history)) == sorted(merged.values())
    seen: set[str] = set()
    for revision in history:
        assert set(revision.parents) <= seen
        seen.add(revision.id)


def test_merges_are_those_of_the_main_line_and_the_ends(opened: Open, merged: dict[str, str]) -> None:
    assert ids(opened(walk="merges").history()) == [merged["m"]]
    source = opened(walk="merges", range=f"{merged['a']}..{merged['c']}")
    assert ids(source.history()) == [merged[name] for name in "amc"]


def test_tags_are_tagged_commits_in_topological_order(opened: Open, repository: Repository) -> None:
    made = line(repository, 6)
    for name, number in (("v9", 1), ("v1", 3), ("v5", 4)):
        repository.tag(name, made[number])
    repository.git("tag", "-a", "-m", "annotated", "annotated", made[2])
    off = repository.commit({"z": "z"}, branch="old", parents=[made[1]])
    repository.tag("v1.1", off)
    history = opened(walk="tags", range="v9..v5").history()
    assert [revision.label for revision in history] == ["v9", "annotated", "v1", "v5"]
    assert ids(opened(walk="tags").history()) == [made[1], made[2], made[3], made[4]]


def test_an_old_end_off_the_main_line_comes_first(opened: Open, merged: dict[str, str]) -> None:
    source = opened(walk="first-parent", range=f"{merged['x']}..main")
    assert ids(source.history()) == [merged[name] for name in "xbmc"]


def test_an_old_end_that_is_no_ancestor_is_refused_with_the_fork(
    opened: Open, repository: Repository, merged: dict[str, str]
) -> None:
    other = repository.commit({"o": "o"}, branch="other", parents=[merged["b"]])
    with pytest.raises(SourceError, match=f'range = "{merged["b"]}..main"'):
        opened(range=f"{other}..main").history()


def test_a_backward_range_says_how_to_turn_it(opened: Open, merged: dict[str, str]) -> None:
    with pytest.raises(SourceError, match=r'is backwards; write ".*\.\.main~1"'):
        opened(range=f"main~1..{merged['a']}").history()


def test_ends_without_common_history_are_refused(opened: Open, repository: Repository) -> None:
    line(repository, 2)
    lonely = repository.commit({"q": "q"}, branch="lonely")
    with pytest.raises(SourceError, match="no history in common"):
        opened(range=f"{lonely}..main").history()


def test_touching_keeps_what_touches_and_both_ends(opened: Open, repository: Repository) -> None:
    texts = [("1", "1"), ("1", "2"), ("2", "2"), ("2", "3"), ("3", "3"), ("3", "4")]
    made = [repository.commit({"src/a.c": a, "docs": d}) for a, d in texts]
    source = opened(range=f"{made[1]}..{made[5]}", touching=("src/a.c",))
    assert ids(source.history()) == [made[1], made[2], made[4], made[5]]


def test_touching_what_is_not_there_is_said(opened: Open, repository: Repository) -> None:
    line(repository, 3)
    with pytest.raises(SourceError, match=r"touches \['scr/a\.c'\]"):
        opened(touching=("scr/a.c",)).history()


def test_touching_names_that_look_like_options_or_shell(opened: Open, repository: Repository) -> None:
    repository.commit({"a": "1"})
    made = repository.commit({"a": "1", "--output=pwned": "1", "$(touch pwned)": "1"})
    repository.commit({"a": "2", "--output=pwned": "1", "$(touch pwned)": "1"})
    assert ids(opened(touching=("--output=pwned",)).history()) == [made]
    assert ids(opened(touching=("$(touch pwned)",)).history()) == [made]


def test_within_is_what_contains_one_end_and_is_contained_in_the_other(
    opened: Open, merged: dict[str, str]
) -> None:
    def named(found: frozenset[str]) -> str:
        return "".join(sorted(name for name, commit in merged.items() if commit in found))

    source = opened()
    assert named(source.within(f"..{merged['b']}")) == "ab"
    assert named(source.within(f"{merged['b']}..")) == "bcm"
    assert named(source.within(f"{merged['x']}..{merged['m']}")) == "imnx"


def test_labels_come_from_a_file_at_each_revision(opened: Open, repository: Repository) -> None:
    texts = ['#define V "1.0"', '#define V "1.0"\n', "nothing here", '// new\n#define V  "1.1"\n', None]
    for text in texts:
        repository.commit({"a": f"{text}", **({"src/ver sion.h": text} if text is not None else {})})
    label = Label(file="src/ver sion.h", pattern=r'^#define V +"([^"]+)"')
    assert [revision.label for revision in opened(label=label).history()] == ["1.0", "1.0", "", "1.1", ""]


def test_without_a_label_file_a_tag_names_its_commit(opened: Open, repository: Repository) -> None:
    made = line(repository, 3)
    for name in ("v1.10", "v1.9"):
        repository.tag(name, made[1])
    assert [revision.label for revision in opened().history()] == ["", "v1.10", ""]


def test_thousands_of_revisions_are_listed_with_labels(opened: Open, repository: Repository) -> None:
    stream = ["reset refs/heads/main\n"]
    for number in range(3000):
        text = f'V "{number // 100}"'
        stream.append(f"commit refs/heads/main\nmark :{number + 1}\ncommitter C <c@d> {number} +0000\n")
        stream.append(f"data 2\nc\nM 644 inline v\ndata {len(text)}\n{text}\n")
        stream.append(f"M 644 inline n\ndata {len(str(number))}\n{number}\n")
    repository.git("fast-import", "--quiet", stdin="".join(stream).encode())
    source = opened(label=Label(file="v", pattern=r'V "(\d+)"'))
    history = source.history()
    assert len(history) == 3000
    assert history[-1].label == "29"
    assert len({source.content(revision) for revision in history}) == 3000


def test_summaries_are_kept_as_they_were_written_hostile_or_not(opened: Open, repository: Repository) -> None:
    subjects = ["$(touch pwned)", "\x1b[31mred", "a\tb", "%H %x00 %n", "--help", "plain\n\nbody is left out"]
    for number, subject in enumerate(subjects):
        repository.commit({"a": str(number)}, subject=subject)
    repository.commit({"a": "latin"}, subject=b"caf\xe9 \xff")
    repository.commit({"a": "none"}, subject="")
    history = opened().history()
    assert [revision.summary for revision in history[:5]] == subjects[:5]
    assert history[5].summary == "plain"
    assert history[6].summary.startswith("caf")
    assert history[7].summary == ""


def test_times_are_iso_8601(opened: Open, repository: Repository) -> None:
    repository.commit({"a": "a"}, date=1_700_000_000)
    assert opened().history()[0].time == "2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize(
    "name", ["--upload-pack=touch pwned", "-x", "$(touch pwned)", "--all", "--output=pwned", "`touch pwned`"]
)
def test_hostile_ends_are_names_and_nothing_else(
    opened: Open, repository: Repository, tmp_path: Path, name: str
) -> None:
    made = line(repository, 3)
    for range in (f"{name}..main", f"main..{name}"):
        with pytest.raises(SourceError, match="no revision"):
            opened(range=range).history()
    if " " not in name and "`" not in name:
        repository.git("update-ref", f"refs/tags/{name}", made[1])
        assert ids(opened(cache="second", range=f"{name}..main").history()) == made[1:]
    assert not list(tmp_path.rglob("pwned"))


def test_a_name_with_a_line_end_is_refused(opened: Open, repository: Repository) -> None:
    line(repository, 2)
    with pytest.raises(SourceError, match="line end"):
        opened(range="main\nmain..main").history()


@pytest.mark.parametrize(
    "location",
    ["ext::sh -c 'touch pwned'", "--upload-pack=touch pwned", "-oProxyCommand=touch pwned:x", "fd::3"],
)
def test_hostile_addresses_start_nothing(opened: Open, tmp_path: Path, location: str) -> None:
    with pytest.raises(SourceError):
        opened(location).history()
    assert not list(tmp_path.rglob("pwned"))


def test_near_names_are_offered(opened: Open, repository: Repository) -> None:
    repository.tag("v1.25.0", line(repository, 1)[0])
    with pytest.raises(SourceError, match=r'no revision "v1\.25".*did you mean "v1\.25\.0"'):
        opened(range="v1.25..main").history()


def test_an_unknown_name_cannot_upset_the_terminal(opened: Open, repository: Repository) -> None:
    line(repository, 1)
    with pytest.raises(SourceError) as caught:
        opened(range="\x1b[2Jgone..main").history()
    assert "\x1b" not in str(caught.value)


def test_the_users_repository_is_not_touched(opened: Open, repository: Repository, tmp_path: Path) -> None:
    line(repository, 3)
    (repository.path / "uncommitted").write_text("mine")
    before = repository.snapshot()
    source = opened(label=Label(file="a", pattern="(.)"))
    history = source.history()
    source.within("main~1..")
    source.materialise(history[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert repository.snapshot() == before


def test_nothing_that_a_repository_sets_is_run(opened: Open, repository: Repository, tmp_path: Path) -> None:
    line(repository, 2)
    pwned = tmp_path / "pwned"
    script = repository.path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {pwned}\n")
    script.chmod(0o755)
    hooks = repository.path / ".git" / "hooks"
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (hooks / hook).write_text(script.read_text())
        (hooks / hook).chmod(0o755)
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "uploadpack.packObjectsHook",
        "core.editor",
    ):
        repository.git("config", setting, str(script))
    source = opened()
    source.materialise(source.history()[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not pwned.exists()


def test_new_commits_and_moved_branches_are_seen_next_time(opened: Open, repository: Repository) -> None:
    first = line(repository, 2)
    assert ids(opened().history()) == first
    repository.git("update-ref", "refs/heads/topic", first[0])
    rewritten = repository.commit({"a": "rewritten"}, parents=[first[0]])
    repository.git("update-ref", "-d", "refs/heads/topic")
    repository.git("update-ref", "refs/heads/topic/deeper", first[0])
    assert ids(opened().history()) == [first[0], rewritten]


def test_a_commit_that_no_ref_names_can_be_had(opened: Open, repository: Repository, tmp_path: Path) -> None:
    made = line(repository, 2)
    opened().history()
    lost = repository.commit({"a": "lost"}, branch="gone")
    lost = repository.commit({"a": "lost"}, branch="gone", parents=[made[1]])
    repository.git("update-ref", "-d", "refs/heads/gone")
    source = opened()
    history = source.history(f"main..{lost[:12]}")
    assert ids(history) == [made[1], lost]
    source.materialise(history[-1], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "a").read_text() == "lost"


def test_head_is_what_the_user_has_checked_out(opened: Open, repository: Repository) -> None:
    made = line(repository, 3)
    opened().history()
    repository.git("checkout", "--quiet", "--detach", made[1])
    assert ids(opened().history()) == made[:2]


def test_a_directory_inside_the_repository_and_a_linked_worktree_are_it(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    made = line(repository, 2)
    (repository.path / "study").mkdir()
    assert ids(opened(repository.path / "study").history()) == made
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), made[0])
    assert ids(opened(tmp_path / "linked").history()) == made[:1]


def test_a_bare_repository_will_do(opened: Open, repository: Repository, tmp_path: Path) -> None:
    made = line(repository, 2)
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare.git"))
    assert ids(opened(tmp_path / "bare.git").history()) == made


def test_an_address_is_cloned_once_and_fetched_when_something_is_missing(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    made = line(repository, 3)
    address = f"file://{repository.path}"
    assert ids(opened(address).history()) == made
    more = repository.commit({"a": "more"})
    repository.tag("v2", more)
    assert ids(opened(address).history()) == made
    source = opened(address, range="main~1..v2")
    history = source.history()
    assert ids(history)[-1] == more
    source.materialise(history[-1], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "a").read_text() == "more"


def test_a_shallow_clone_is_refused_with_its_remedy(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    line(repository, 3)
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    with pytest.raises(SourceError, match="git fetch --unshallow"):
        opened(tmp_path / "shallow").history()


def test_what_is_no_repository_is_said(opened: Open, repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(SourceError, match="no git repository there"):
        opened(tmp_path / "plain").history()
    with pytest.raises(SourceError, match="no such directory"):
        opened(tmp_path / "nothing").history()
    with pytest.raises(SourceError, match="has no commit yet"):
        opened().history()


def test_a_worktree_is_a_git_checkout_in_which_describe_works(
    opened: Open, repository: Repository, tmp_path: Path
) -> None:
    made = line(repository, 3)
    repository.tag("v1", made[0])
    source = opened()
    source.materialise(source.history()[2], str(tmp_path / "tree"), str(tmp_path / "log"))
    said = subprocess.run(
        ["git", "describe", "--tags"], cwd=tmp_path / "tree", check=True, capture_output=True, text=True
    )
    assert said.stdout.startswith("v1-2-g")
    assert "worktree add" in (tmp_path / "log").read_text()


def test_links_stay_links(opened: Open, repository: Repository, tmp_path: Path) -> None:
    repository.commit({"outside": "link:/etc/passwd", "inside": "link:f", "f": "text"})
    source = opened()
    source.materialise(source.history()[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "outside").readlink() == Path("/etc/passwd")
    assert (tmp_path / "tree" / "inside").read_text() == "text"


def test_equal_trees_have_equal_contents(opened: Open, repository: Repository) -> None:
    for text in ("1", "2", "1"):
        repository.commit({"a": text})
    source = opened()
    one, two, three = map(source.content, source.history())
    assert one == three != two
    assert opened().content(source.history()[1]) == two


def test_a_clone_killed_half_way_is_made_again(opened: Open, repository: Repository, tmp_path: Path) -> None:
    made = line(repository, 2)
    opened().history()
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    for half in mirror.iterdir():
        if half.name != "HEAD":
            half.rename(tmp_path / half.name)
    mirror.rename(mirror.with_name("making.git"))
    assert ids(opened().history()) == made


def test_a_worktree_killed_half_way_is_redone(opened: Open, repository: Repository, tmp_path: Path) -> None:
    line(repository, 2)
    source, tree = opened(), tmp_path / "tree"
    source.materialise(source.history()[0], str(tree), str(tmp_path / "log"))
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    (mirror / "worktrees" / "tree" / "locked").write_text("initializing")
    tree.rename(tmp_path / "elsewhere")
    source.materialise(source.history()[1], str(tree), str(tmp_path / "log"))
    assert (tree / "a").read_text() == "1"
    tree.rename(tmp_path / "gone")
    again = opened()
    again.materialise(again.history()[0], str(tree), str(tmp_path / "log"))
    assert [path.name for path in (mirror / "worktrees").iterdir()] == ["tree"]


def test_checkouts_side_by_side(opened: Open, repository: Repository, tmp_path: Path) -> None:
    line(repository, 8)
    history = opened().history()

    def check_out(number: int) -> str:
        with Launcher() as own:
            source = GitSource(
                Asked(kind="git", location=str(repository.path)), cache=str(tmp_path / "cache"), starter=own
            )
            directory = tmp_path / str(number) / "tree"
            source.materialise(history[number], str(directory), str(tmp_path / f"log{number}"))
            return (directory / "a").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(check_out, range(8))) == [str(number) for number in range(8)]


def test_a_failed_checkout_tells_gits_own_words(opened: Open, repository: Repository, tmp_path: Path) -> None:
    made = repository.commit({"a": "a"})
    source = opened()
    history = source.history()
    blob = repository.git("rev-parse", f"{made}:a")
    (mirror,) = (tmp_path / "cache").glob("git/*/mirror.git")
    (mirror / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(CheckoutFailed, match=r"git cannot check out .*: (error|fatal): unable to read"):
        source.materialise(history[0], str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not (tmp_path / "tree").exists()
