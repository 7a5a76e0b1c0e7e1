"""Changes applied to old revisions: clean, in conflict, of merges, from files; never in the user's repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.errors import CheckoutFailed, NoAnswer, SourceError
from perftrail.model.patch import Conflict, LeftOut, Patch, PatchPaths
from perftrail.model.source import Source as SourceTable
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.directory import DirectorySource
from perftrail.sources.git import GitSource
from perftrail.sources.git.patch import GitPatches
from perftrail.sources.patched import PatchedSource, PlainPatches, patched
from tests.sources.repositories import Repository


@pytest.fixture
def source(repository: Repository, tmp_path: Path, launcher: Launcher) -> GitSource:
    table = SourceTable(kind="git", location=str(repository.path))
    return GitSource(table, cache=str(tmp_path / "cache"), starter=launcher)


@pytest.fixture
def patches(repository: Repository, tmp_path: Path, launcher: Launcher) -> GitPatches:
    table = SourceTable(kind="git", location=str(repository.path))
    return GitPatches(table, cache=str(tmp_path / "cache"), starter=launcher)


def one(source: GitSource, name: str) -> Revision:
    (found,) = source.history(f"{name}..{name}")
    return found


def lines(**changed: str) -> str:
    """Thirty numbered lines, some replaced."""
    return "".join(f"{changed.get(f'line{number}', f'line {number}')}\n" for number in range(1, 31))


def carried(outcome: Patch | Conflict) -> Patch:
    assert isinstance(outcome, Patch), outcome
    return outcome


def blocked(outcome: Patch | Conflict) -> Conflict:
    assert isinstance(outcome, Conflict), outcome
    return outcome


def test_a_fix_is_carried_though_the_trunk_has_changed_around_it(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(), "unrelated": "1"})
    repository.commit({"f": lines(line2="two"), "unrelated": "2"})
    fix = repository.commit({"f": lines(line2="two", line20="fixed"), "unrelated": "2"})
    before = repository.snapshot()
    base = one(source, old)
    patch = carried(patches.cherry_pick(one(source, fix), onto=base, workplace=str(tmp_path / "work")))
    assert [(each.path, each.added, each.removed) for each in patch.files] == [("f", 1, 1)]
    own = patched(base, patch)
    both = PatchedSource(source, own, cache=str(tmp_path / "cache"), starter=source._mirror._starter)
    both.materialise(own.revision, str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "f").read_text() == lines(line20="fixed")
    assert (tmp_path / "tree" / "unrelated").read_text() == "1"
    assert repository.snapshot() == before
    assert not (tmp_path / "work").exists()


def test_the_patched_revision_is_named_by_its_content_and_is_in_the_eras_of_its_base(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines()})
    fix = repository.commit({"f": lines(line3="fixed")})
    other = repository.commit({"f": lines(line3="fixed otherwise")})
    base = one(source, old)

    def patched_by(name: str) -> PatchedSource:
        patch = carried(patches.cherry_pick(one(source, name), onto=base, workplace=str(tmp_path / "work")))
        return PatchedSource(
            source, patched(base, patch), cache=str(tmp_path / "cache"), starter=source._mirror._starter
        )

    again = [patched_by(fix) for _ in range(2)]
    own = again[0]._added.revision
    assert again[1]._added.revision == own
    assert again[0].content(own) == again[1].content(own) != source.content(base)
    assert own.id in again[0].within(f"..{old}")
    assert own.id not in again[0].within(f"{fix}..{other}")
    assert again[0].history() == source.history()


def test_a_merge_is_carried_whole_against_its_first_parent(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines()})
    repository.commit({"f": lines(line1="trunk")})
    main = repository.commit({"f": lines(line1="trunk", line2="trunk")})
    side = repository.commit({"f": lines(line10="ten")}, parents=[old], branch="side")
    side = repository.commit({"f": lines(line10="ten", line20="twenty")}, branch="side")
    both = lines(line1="trunk", line2="trunk", line10="ten", line20="twenty")
    merge = repository.commit({"f": both}, parents=[main, side])
    patch = carried(
        patches.cherry_pick(one(source, merge), onto=one(source, old), workplace=str(tmp_path / "work"))
    )
    assert b"+ten" in patch.text
    assert b"+twenty" in patch.text
    assert b"trunk" not in patch.text


def test_a_conflict_names_file_lines_and_who_touched_them(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(), "g": "g"}, subject="release")
    repository.commit({"f": lines(line25="other_machines"), "g": "g"}, subject="elsewhere in the file")
    needed = repository.commit(
        {"f": lines(line9="new nine", line25="other_machines"), "g": "g"}, subject="needed"
    )
    repository.commit(
        {"f": lines(line9="new nine", line25="other_machines"), "g": "other"}, subject="another file"
    )
    fixed = lines(line9="new nine", line10="fixed", line25="other_machines")
    fix = repository.commit({"f": fixed, "g": "other"}, subject="fix")
    conflict = blocked(
        patches.cherry_pick(one(source, fix), onto=one(source, old), workplace=str(tmp_path / "work"))
    )
    [obstacle] = conflict.obstacles
    assert (obstacle.path, obstacle.clash) == ("f", "changed")
    [passage] = obstacle.passages
    assert passage.first <= 10 <= passage.last
    assert [each.id for each in passage.since] == [needed]
    assert [each.id for each in conflict.prerequisites] == [needed]
    half = Path(conflict.directory) / "f"
    assert half.read_text().splitlines()[passage.marker - 1].startswith("<<<<<<<")


def test_the_old_branchs_own_changes_are_distinguished(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    base = repository.commit({"f": lines()})
    own = repository.commit({"f": lines(line10="hotfix")}, parents=[base], branch="release", subject="hotfix")
    repository.commit({"f": lines(line28="trunk")})
    fix = repository.commit({"f": lines(line10="fixed", line28="trunk")})
    conflict = blocked(
        patches.cherry_pick(one(source, fix), onto=one(source, own), workplace=str(tmp_path / "work"))
    )
    [passage] = conflict.obstacles[0].passages
    assert passage.since == ()
    assert [each.id for each in passage.only_on_old_branch] == [own]
    assert conflict.prerequisites == ()


def test_a_file_missing_in_the_old_revision_is_reported_with_the_commit_that_added_it(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines()})
    brought = repository.commit({"f": lines(), "new": lines()}, subject="a new file")
    fix = repository.commit({"f": lines(), "new": lines(line5="fixed")})
    conflict = blocked(
        patches.cherry_pick(one(source, fix), onto=one(source, old), workplace=str(tmp_path / "work"))
    )
    [obstacle] = conflict.obstacles
    assert (obstacle.path, obstacle.clash) == ("new", "absent")
    assert [each.id for each in obstacle.since] == [brought]
    assert [each.id for each in conflict.prerequisites] == [brought]


def test_work_in_a_half_applied_tree_is_never_lost(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines()})
    repository.commit({"f": lines(line9="other")})
    fix = repository.commit({"f": lines(line9="other", line10="fixed")})
    first = blocked(
        patches.cherry_pick(one(source, fix), onto=one(source, old), workplace=str(tmp_path / "work"))
    )
    assert not first.directory_existed
    (Path(first.directory) / "f").write_text(lines(line10="fixed"))
    again = blocked(
        patches.cherry_pick(one(source, fix), onto=one(source, old), workplace=str(tmp_path / "work"))
    )
    assert again.directory_existed
    assert again.directory == first.directory
    assert (Path(first.directory) / "f").read_text() == lines(line10="fixed")
    # As its user goes on: the resolved tree gives the patch.
    git = ["git", "-C", first.directory]
    created = subprocess.run([*git, "diff", "HEAD", "--binary"], check=True, capture_output=True).stdout
    patch = carried(patches.apply(created, onto=one(source, old), workplace=str(tmp_path / "other")))
    assert b"+fixed" in patch.text


def test_a_change_that_is_already_contained_is_reported(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(line10="fixed")})
    base = repository.commit({"f": lines()}, parents=[], branch="other")
    fix = repository.commit({"f": lines(line10="fixed")}, parents=[base], branch="other")
    with pytest.raises(NoAnswer, match="already"):
        patches.cherry_pick(one(source, fix), onto=one(source, old), workplace=str(tmp_path / "work"))


def test_a_file_that_is_no_patch_is_refused(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = one(source, repository.commit({"f": lines()}))
    for text in (b"", b"hello\n", b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\nbroken"):
        with pytest.raises((SourceError, NoAnswer)):
            patches.apply(text, onto=old, workplace=str(tmp_path / "work"))


def test_a_patch_leaves_the_tree_it_is_for_alone(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = one(source, repository.commit({"f": lines()}))
    head = b"diff --git a/../../pwned b/../../pwned\nnew file mode 100644\n--- /dev/null\n"
    outside = head + b"+++ b/../../pwned\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(SourceError):
        patches.apply(outside, onto=old, workplace=str(tmp_path / "work"))
    assert not list(tmp_path.rglob("pwned"))


def test_a_patch_that_does_not_apply_says_where_and_writes_the_rejected_hunks(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = one(source, repository.commit({"f": lines(), "g": lines()}))
    text = (
        b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n line 4\n-line five\n+fixed\n line 6\n"
        b"diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -4,3 +4,3 @@\n line 4\n-line 5\n+fixed\n line 6\n"
    )
    conflict = blocked(patches.apply(text, onto=old, workplace=str(tmp_path / "work")))
    assert [(each.path, each.clash) for each in conflict.obstacles] == [("f", "rejected")]
    assert conflict.obstacles[0].passages[0].first == 4
    assert (Path(conflict.directory) / "g").read_text() == lines(line5="fixed")
    assert (Path(conflict.directory) / "f.rej").exists()


def test_names_of_files_are_never_options_or_commands(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    names = ["--output=pwned", "$(touch pwned)", "a b\tc", "weird\x1b[31m", ":(top)x", "é"]
    old = repository.commit({name: lines() for name in names})
    other = repository.commit({name: lines(line9="other") for name in names}, subject="\u2028other")
    fix = repository.commit({name: lines(line9="other", line10="fixed") for name in names})
    conflict = blocked(
        patches.cherry_pick(one(source, fix), onto=one(source, old), workplace=str(tmp_path / "work"))
    )
    assert sorted(each.path for each in conflict.obstacles) == sorted(names)
    for obstacle in conflict.obstacles:
        assert [each.id for each in obstacle.passages[0].since] == [other], obstacle.path
    again = repository.commit({name: lines(line20="fixed") for name in names}, parents=[old], branch="x")
    patch = carried(
        patches.cherry_pick(one(source, again), onto=one(source, old), workplace=str(tmp_path / "w"))
    )
    assert sorted(each.path for each in patch.files) == sorted(names)
    assert not list(tmp_path.rglob("pwned"))


def test_a_patch_applies_to_a_plain_directory_in_a_repository(tmp_path: Path, launcher: Launcher) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "f").write_text(lines())
    source = DirectorySource(SourceTable(kind="directory", location=str(tmp_path / "program")))
    (base,) = source.history()
    text = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n line 4\n-line 5\n+fixed\n line 6\n"
    plain = PlainPatches(source, cache=str(tmp_path / "cache"), starter=launcher)
    patch = carried(plain.apply(text, onto=base, workplace=str(tmp_path / "work")))
    own = patched(base, patch)
    both = PatchedSource(source, own, cache=str(tmp_path / "cache"), starter=launcher)
    both.materialise(own.revision, str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "f").read_text() == lines(line5="fixed")
    assert (tmp_path / "program" / "f").read_text() == lines()
    other = text.replace(b"-line 5", b"-line five")
    assert blocked(plain.apply(other, onto=base, workplace=str(tmp_path / "work"))).obstacles[0].path == "f"


def test_a_patch_that_no_longer_applies_is_a_failed_check_out(tmp_path: Path, launcher: Launcher) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "f").write_text(lines())
    source = DirectorySource(SourceTable(kind="directory", location=str(tmp_path / "program")))
    (base,) = source.history()
    own = patched(base, Patch(text=b"diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", files=()))
    both = PatchedSource(source, own, cache=str(tmp_path / "cache"), starter=launcher)
    with pytest.raises(CheckoutFailed, match="does not apply"):
        both.materialise(own.revision, str(tmp_path / "tree"), str(tmp_path / "log"))
    assert not (tmp_path / "tree").exists()


LOG = PatchPaths(unaffected_by=("ChangeLog", "docs"))


def test_conflicts_in_files_that_no_build_reads_do_not_count(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(), "ChangeLog": "1\n"})
    repository.commit({"f": lines(), "ChangeLog": "2\n", "docs/[a]*": "a\n", "docs/b": lines()})
    fix = repository.commit(
        {
            "f": lines(line20="fixed"),
            "ChangeLog": "3\n",
            "docs/[a]*": "b\n",
            "docs/b": lines(),
            "docs/c": "c\n",
        }
    )
    base, change = one(source, old), one(source, fix)
    patch = carried(patches.cherry_pick(change, onto=base, workplace=str(tmp_path / "work"), paths=LOG))
    assert [each.path for each in patch.files] == ["docs/c", "f"]
    assert patch.left_out == (
        LeftOut(path="ChangeLog", why="unaffected"),
        LeftOut(path="docs/[a]*", why="unaffected"),
    )
    assert not (tmp_path / "work").exists()
    unread = PatchPaths(unread=frozenset({"ChangeLog", "docs/[a]*"}))
    by_trace = carried(patches.cherry_pick(change, onto=base, workplace=str(tmp_path / "work"), paths=unread))
    assert by_trace.text == patch.text
    assert {each.why for each in by_trace.left_out} == {"unread"}
    excluded = PatchPaths(excluded=("docs", "ChangeLog"))
    without = carried(
        patches.cherry_pick(change, onto=base, workplace=str(tmp_path / "work"), paths=excluded)
    )
    assert [each.path for each in without.files] == ["f"]
    only = carried(
        patches.cherry_pick(
            change,
            onto=base,
            workplace=str(tmp_path / "work"),
            paths=PatchPaths(only=("f", "ChangeLog"), excluded=("C*",)),
        )
    )
    assert only.text == without.text
    with pytest.raises(NoAnswer, match="left out"):
        patches.cherry_pick(
            change,
            onto=base,
            workplace=str(tmp_path / "work"),
            paths=PatchPaths(only=("ChangeLog",), excluded=("*",)),
        )


def test_a_conflict_in_a_file_that_counts_stays_a_conflict(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(), "ChangeLog": "1\n"})
    repository.commit({"f": lines(line9="other"), "ChangeLog": "2\n"})
    fix = repository.commit({"f": lines(line9="other", line10="fixed"), "ChangeLog": "3\n"})
    conflict = blocked(
        patches.cherry_pick(
            one(source, fix), onto=one(source, old), workplace=str(tmp_path / "work"), paths=LOG
        )
    )
    assert [each.path for each in conflict.obstacles] == ["f"]
    assert [each.path for each in conflict.left_out] == ["ChangeLog"]
    assert (Path(conflict.directory) / "ChangeLog").read_text() == "1\n"


def test_a_given_patch_leaves_files_out(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path, launcher: Launcher
) -> None:
    base = one(source, repository.commit({"f": lines(), "g[1]": lines()}))
    text = (
        b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n line 4\n-line 5\n+fixed\n line 6\n"
        b"diff --git a/g[1] b/g[1]\n--- a/g[1]\n+++ b/g[1]\n@@ -4,3 +4,3 @@\n line 4\n-line five\n+fixed\n line 6\n"
    )
    paths = PatchPaths(unaffected_by=("g*",))
    by_git = carried(patches.apply(text, onto=base, workplace=str(tmp_path / "work"), paths=paths))
    plain = PlainPatches(source, cache=str(tmp_path / "cache"), starter=launcher)
    by_text = carried(plain.apply(text, onto=base, workplace=str(tmp_path / "work"), paths=paths))
    for number, patch in enumerate((by_git, by_text)):
        assert [each.path for each in patch.files] == ["f"]
        assert [each.path for each in patch.left_out] == ["g[1]"]
        own = patched(base, patch)
        both = PatchedSource(source, own, cache=str(tmp_path / "cache"), starter=launcher)
        tree = tmp_path / f"tree-{number}"
        both.materialise(own.revision, str(tree), str(tmp_path / "log"))
        assert (tree / "f").read_text() == lines(line5="fixed")
        assert (tree / "g[1]").read_text() == lines()


def test_a_change_is_reverted_on_a_later_revision(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    first = repository.commit({"f": lines(), "ChangeLog": "1\n"})
    culprit = repository.commit({"f": lines(line20="slow"), "ChangeLog": "2\n", "added": "1\n"})
    newest = repository.commit({"f": lines(line2="two", line20="slow"), "ChangeLog": "3\n", "added": "1\n"})
    before = repository.snapshot()
    onto, change = one(source, newest), one(source, culprit)
    patch = carried(patches.revert(change, onto=onto, workplace=str(tmp_path / "work"), paths=LOG))
    assert [(each.path, each.added, each.removed) for each in patch.files] == [("added", 0, 1), ("f", 1, 1)]
    assert [each.path for each in patch.left_out] == ["ChangeLog"]
    own = patched(onto, patch)
    both = PatchedSource(source, own, cache=str(tmp_path / "cache"), starter=source._mirror._starter)
    both.materialise(own.revision, str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree" / "f").read_text() == lines(line2="two")
    assert not (tmp_path / "tree" / "added").exists()
    assert repository.snapshot() == before
    with pytest.raises(NoAnswer, match="does not have this change"):
        patches.revert(change, onto=one(source, first), workplace=str(tmp_path / "work"))


def test_a_conflict_of_a_revert_names_the_later_revisions(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    repository.commit({"f": lines(), "g": "1\n"})
    culprit = repository.commit({"f": lines(line10="slow"), "g": "2\n"})
    repository.commit({"f": lines(line10="slow", line25="elsewhere"), "g": "2\n"})
    one_later = repository.commit({"f": lines(line10="slower", line25="elsewhere"), "g": "2\n"})
    two_later = repository.commit({"f": lines(line10="slowest", line25="elsewhere"), "g": "2\n"})
    gone = repository.commit({"f": lines(line10="slowest", line25="elsewhere")}, subject="remove g")
    conflict = blocked(
        patches.revert(one(source, culprit), onto=one(source, gone), workplace=str(tmp_path / "work"))
    )
    [changed, removed] = conflict.obstacles
    assert (changed.path, changed.clash) == ("f", "changed")
    assert [each.id for each in changed.passages[0].since] == [one_later, two_later]
    assert changed.passages[0].only_on_old_branch == ()
    assert (removed.path, removed.clash) == ("g", "absent")
    assert [each.id for each in removed.since] == [gone]
    assert [each.id for each in conflict.prerequisites] == [gone, two_later, one_later]


def test_a_merge_and_a_commit_inside_it_are_reverted(
    repository: Repository, source: GitSource, patches: GitPatches, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines()})
    main = repository.commit({"f": lines(line1="trunk")})
    inner = repository.commit({"f": lines(line10="ten")}, parents=[old], branch="side")
    side = repository.commit({"f": lines(line10="ten", line20="twenty")}, branch="side")
    merge = repository.commit(
        {"f": lines(line1="trunk", line10="ten", line20="twenty")}, parents=[main, side]
    )
    onto = one(source, repository.commit({"f": lines(line1="new", line10="ten", line20="twenty")}))
    whole = carried(patches.revert(one(source, merge), onto=onto, workplace=str(tmp_path / "work")))
    part = carried(patches.revert(one(source, inner), onto=onto, workplace=str(tmp_path / "work")))
    assert b"-ten" in whole.text
    assert b"-twenty" in whole.text
    assert b"-ten" in part.text
    assert b"twenty" not in part.text
