"""Changes of check-ins applied to old ones, with the same result as git and without files of Fossil."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import NoAnswer, SourceError
from perftrail.model.patch import Conflict, Patch, PatchPaths
from perftrail.model.subject import Revision
from perftrail.process.launcher import Launcher
from perftrail.sources.fossil import FossilSource
from perftrail.sources.fossil.patch import FossilPatches
from perftrail.sources.patched import PatchedSource, patched
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, needs_fossil

pytestmark = needs_fossil

SETTING = {".fossil-settings/manifest": "on\n", ".gitattributes": "* text eol=crlf ident\n"}


def lines(**changed: str) -> str:
    """Thirty numbered lines, some replaced; each ends with a carriage return and a line feed."""
    return "".join(f"{changed.get(f'line{number}', f'line {number} $Id$')}\r\n" for number in range(1, 31))


def one(source: FossilSource, name: str) -> Revision:
    (found,) = source.history(f"{name}..{name}")
    return found


def carry(source: FossilSource, launcher: Launcher, where: Path, *, fix: str, onto: str) -> Patch | Conflict:
    patches = FossilPatches(source, cache=str(where / "cache"), starter=launcher)
    return patches.cherry_pick(one(source, fix), onto=one(source, onto), workplace=str(where / "work"))


def test_a_fix_is_carried_though_the_trunk_has_changed_around_it(
    opened: Open, repository: FossilRepository, launcher: Launcher, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(), "unrelated": "1", "run": "program:1", **SETTING})
    repository.commit({"f": lines(line2="two"), "unrelated": "2", "run": "program:1", **SETTING})
    new = {"f": lines(line2="two", line20="fixed"), "unrelated": "2", "run": "program:2", "to": "link:run"}
    fix = repository.commit({**new, **SETTING})
    source = opened()
    patch = carry(source, launcher, tmp_path, fix=fix, onto=old)
    assert isinstance(patch, Patch)
    assert [each.path for each in patch.files] == ["f", "run", "to"]
    assert not (tmp_path / "work").exists()
    own = patched(one(source, old), patch)
    both = PatchedSource(source, own, cache=str(tmp_path / "cache"), starter=launcher)
    both.materialise(own.revision, str(tmp_path / "tree"), str(tmp_path / "log"))
    assert (tmp_path / "tree/f").read_bytes() == lines(line20="fixed").encode()
    assert (tmp_path / "tree/unrelated").read_text() == "1"
    assert (tmp_path / "tree/run").stat().st_mode & 0o111
    assert (tmp_path / "tree/to").readlink() == Path("run")


def test_all_changes_of_a_merge_are_applied(
    opened: Open, repository: FossilRepository, launcher: Launcher, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines()})
    side = repository.commit({"f": lines(line3="three")}, branch="side", parents=[old])
    side = repository.commit({"f": lines(line3="three", line9="nine")}, branch="side")
    repository.commit({"f": lines(line25="25")})
    merge = repository.commit(
        {"f": lines(line3="three", line9="nine", line25="25")}, parents=[repository._tips["trunk"], side]
    )
    patch = carry(opened(), launcher, tmp_path, fix=merge, onto=old)
    assert isinstance(patch, Patch)
    assert [(each.added, each.removed) for each in patch.files] == [(2, 2)]


def test_a_conflict_leaves_a_partially_applied_tree_to_resolve(
    opened: Open, repository: FossilRepository, launcher: Launcher, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(), "g": "1\n"})
    repository.commit({"f": lines(line19="in the way"), "g": "1\n"})
    fix = repository.commit({"f": lines(line19="in the way", line20="fixed"), "g": "2\n"})
    source = opened()
    conflict = carry(source, launcher, tmp_path, fix=fix, onto=old)
    assert isinstance(conflict, Conflict)
    [obstacle] = conflict.obstacles
    assert (obstacle.path, obstacle.clash) == ("f", "changed")
    tree = tmp_path / "work/tree"
    assert conflict.directory == str(tree)
    assert "<<<<<<< " in (tree / "f").read_text()
    assert (tree / "g").read_text() == "2\n"
    (tree / "f").write_text("mine")
    again = carry(source, launcher, tmp_path, fix=fix, onto=old)
    assert isinstance(again, Conflict)
    assert again.directory_existed
    assert (tree / "f").read_text() == "mine"
    assert [each.name for each in (tmp_path / "work").iterdir()] == ["tree"]


def test_a_change_that_is_there_already_and_an_empty_one_are_reported(
    opened: Open, repository: FossilRepository, launcher: Launcher, tmp_path: Path
) -> None:
    first = repository.commit({"f": "1"})
    fix = repository.commit({"f": "2"})
    last = repository.commit({"f": "2", "g": "1"})
    source = opened()
    with pytest.raises(NoAnswer, match="already has this change"):
        carry(source, launcher, tmp_path, fix=fix, onto=last)
    with pytest.raises(SourceError, match="is the first check-in"):
        carry(source, launcher, tmp_path, fix=first, onto=last)


def test_a_check_in_that_contains_a_repository_of_git_is_refused(
    opened: Open, repository: FossilRepository, launcher: Launcher, tmp_path: Path
) -> None:
    old = repository.commit({"f": "1"})
    hook = {"sub/.git/hooks/post-checkout": "program:#!/bin/sh\ntouch pwned\n", "sub/.git/HEAD": "ref: x"}
    fix = repository.commit({"f": "2", **hook})
    with pytest.raises(SourceError, match=r"contains a file \.git"):
        carry(opened(), launcher, tmp_path, fix=fix, onto=old)


def test_a_conflict_in_a_change_log_does_not_count_in_back_ports_and_reverts(
    opened: Open, repository: FossilRepository, launcher: Launcher, tmp_path: Path
) -> None:
    old = repository.commit({"f": lines(), "ChangeLog": "1\n"})
    repository.commit({"f": lines(), "ChangeLog": "2\n"})
    fix = repository.commit({"f": lines(line20="fixed"), "ChangeLog": "3\n"})
    last = repository.commit({"f": lines(line2="two", line20="fixed"), "ChangeLog": "4\n"})
    source = opened()
    patches = FossilPatches(source, cache=str(tmp_path / "cache"), starter=launcher)
    work, paths = str(tmp_path / "work"), PatchPaths(unaffected_by=("Change*",))
    applied = patches.cherry_pick(one(source, fix), onto=one(source, old), workplace=work, paths=paths)
    assert isinstance(applied, Patch)
    assert [each.path for each in applied.files] == ["f"]
    assert [each.path for each in applied.left_out] == ["ChangeLog"]
    reverted = patches.revert(one(source, fix), onto=one(source, last), workplace=work, paths=paths)
    assert isinstance(reverted, Patch)
    assert [(each.path, each.added, each.removed) for each in reverted.files] == [("f", 1, 1)]
    assert b"-fixed" in reverted.text
    with pytest.raises(NoAnswer, match="nothing remains to revert"):
        patches.revert(one(source, fix), onto=one(source, old), workplace=work, paths=paths)
