"""Repairs on real trees with a real compiler and a real git: their effect, refusals and names of builds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perftrail.model.build import Recipe, Repairs
from perftrail.model.subject import Revision, Subject
from tests.builds.subject_builder import PROGRAM, PROJECT, Project

OLD = {**PROJECT, "program.c": '#include "sys/old.h"\n' + PROGRAM}
FIX = """\
--- a/program.c
+++ b/program.c
@@ -1,2 +1,2 @@
 #include <stdio.h>
-int main(void) { printf("%d\\n", 7); return 0; }
+int main(void) { printf("%d\\n", 8); return 0; }
"""


def study_file(project: Project, name: str, text: str, *, program: bool = False) -> None:
    file = project.root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755 if program else 0o644)


def placed(project: str, file: str) -> Recipe:
    return Recipe(directory=".", steps=("true",), repairs=Repairs(overlay={project: file}))


def patched(*files: str) -> Recipe:
    return Recipe(directory=".", steps=("cat program.c",), repairs=Repairs(patches=files))


def test_a_missing_header_is_put_in_and_the_revision_builds(project: Project) -> None:
    revision = project.commit(OLD)
    study_file(project, "compat/old.h", "#define OLD 1\n")
    lines = ("make CFLAGS=-I.",)
    assert "old.h" in project.failed(revision, Recipe(directory=".", steps=lines)).message
    header = Repairs(overlay={"sys/old.h": "compat/old.h"})
    built = project.build(revision, Recipe(directory=".", steps=lines, repairs=header))
    assert (Path(built.directory) / "program").exists()


def test_a_program_stays_one_and_what_was_there_is_replaced(project: Project) -> None:
    study_file(project, "configure", "#!/bin/sh\ntouch made\n", program=True)
    revision = project.commit({**PROJECT, "configure": "exit 1\n"})
    recipe = Recipe(
        directory=".",
        steps=("./configure",),
        outputs=("made",),
        repairs=Repairs(overlay={"configure": "configure"}),
    )
    project.build(revision, recipe)


def test_no_link_of_a_revision_leads_a_repair_out_of_its_tree(project: Project) -> None:
    outside = project.root / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    study_file(project, "file", "ours")
    revision = project.commit(
        {**PROJECT, "sys": f"link:{outside}", "kept": f"link:{outside}/kept", "in": "link:lib", "lib/a": "a"}
    )
    assert (
        "a link of this revision that leads out of its tree"
        in project.failed(revision, placed("sys/new", "file")).message
    )
    assert "leads out" in project.failed(revision, placed("sys/deep/new", "file")).message
    built = project.build(revision, placed("kept", "file"))
    assert (Path(built.directory) / "kept").read_text() == "ours"
    within = project.build(revision, placed("in/b", "file"))
    assert (Path(within.directory) / "lib/b").read_text() == "ours"
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"kept": "kept"}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("lib", 'overlay to "lib": this revision has a directory there'),
        ("README/x", "a directory of the path is a file in this revision"),
    ],
)
def test_a_place_that_a_tree_cannot_have_is_reported(project: Project, where: str, expected: str) -> None:
    study_file(project, "file", "ours")
    failure = project.failed(project.commit({**PROJECT, "lib/a": "a"}), placed(where, "file"))
    assert failure.stage == "build"
    assert expected in failure.message
    assert expected in Path(failure.log).read_text()


def test_a_loop_of_links_in_a_revision_is_reported(project: Project) -> None:
    study_file(project, "file", "ours")
    revision = project.commit({**PROJECT, "loop": "link:loop"})
    failure = project.failed(revision, placed("loop/x", "file"))
    assert "overlay to" in failure.message


def test_a_patch_with_a_name_that_no_file_can_have_is_reported(project: Project) -> None:
    study_file(project, "long.patch", f"--- a/{'x' * 300}\n+++ b/{'x' * 300}\n@@ -1 +1 @@\n-old\n+new\n")
    failure = project.failed(project.commit(), patched("long.patch"))
    assert failure.message.startswith("long.patch: ")


def test_a_patch_is_applied_whatever_its_paths_begin_with(project: Project) -> None:
    revision = project.commit()
    study_file(project, "git.patch", FIX)
    study_file(project, "fossil.patch", FIX.replace("a/", "").replace("b/", ""))
    for name in ("git.patch", "fossil.patch"):
        built = project.build(revision, patched(name))
        assert "8" in (Path(built.directory) / "program.c").read_text()
    assert len(list(project.builds.glob("*/built.json"))) == 2


def test_a_patch_that_does_not_apply_says_which_hunk_and_why(project: Project) -> None:
    lines = [f"line {number}" for number in range(40)]
    text = "\n".join([*lines, ""])
    patch = (
        "--- a/text\n+++ b/text\n@@ -1,2 +1,2 @@\n-line 0\n+first\n line 1\n"
        "@@ -30,3 +30,3 @@\n line 29\n-line thirty\n+line XXX\n line 31\n"
        "--- a/gone.c\n+++ b/gone.c\n@@ -1 +1 @@\n-a\n+b\n"
        "--- /dev/null\n+++ b/README\n@@ -0,0 +1 @@\n+new\n"
    )
    study_file(project, "fixes/old.patch", patch)
    failure = project.failed(project.commit({**PROJECT, "text": text}), patched("fixes/old.patch"))
    assert failure.stage == "build"
    assert failure.message.splitlines() == [
        'fixes/old.patch: hunk 2 of "text" does not apply: this revision has no line "line thirty" '
        "(near line 30)",
        'fixes/old.patch: "gone.c" does not apply: this revision has no such file',
        'fixes/old.patch: "README" does not apply: this revision already has a file of that name',
    ]
    log = Path(failure.log).read_text()
    assert "error: while searching for:\nline 29\nline thirty\nline 31\n" in log


def test_a_change_that_a_revision_has_already_is_reported(project: Project) -> None:
    study_file(project, "fix.patch", FIX)
    later = project.commit({**PROJECT, "program.c": PROGRAM.replace("7", "8")})
    message = project.failed(later, patched("fix.patch")).message
    assert message == "fix.patch: this revision already has the change; end the patch's range before it"


@pytest.mark.parametrize(
    "path",
    ["b/../../evil", "/{root}/evil", "b/sys/evil", "b/.git/evil"],
    ids=["up", "absolute", "link", "git"],
)
def test_no_patch_leaves_the_tree(project: Project, path: str) -> None:
    outside = project.root / "outside"
    outside.mkdir()
    where = path.format(root=project.root)
    text = f"--- /dev/null\n+++ {where}\n@@ -0,0 +1 @@\n+evil\n"
    study_file(project, "evil.patch", text)
    revision = project.commit({**PROJECT, "sys": f"link:{outside}"})
    failure = project.failed(revision, patched("evil.patch"))
    assert failure.message.startswith("evil.patch: ")
    assert not list(project.root.rglob("evil"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("hello\n", "No valid patches in input"), (FIX.replace("@@ -1,2", "@@ -1,9"), "corrupt patch")],
)
def test_text_that_is_not_a_patch_is_reported(project: Project, text: str, expected: str) -> None:
    study_file(project, "no.patch", text)
    assert expected in project.failed(project.commit(), patched("no.patch")).message


def test_the_users_own_git_settings_do_not_count(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project.root / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[apply]\n\twhitespace = error-all\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(home))
    study_file(project, "fix.patch", FIX.replace("8);", "8);  "))
    project.build(project.commit(), patched("fix.patch"))


def test_repairs_are_part_of_the_build_key(project: Project) -> None:
    builder, subject = project.builder(), Subject(revision=project.commit(), variant="plain")
    for name in ("one", "two", "same-as-one"):
        study_file(project, name, name.removeprefix("same-as-"))

    def key(repairs: Repairs) -> str:
        return builder.key(subject, Recipe(directory=".", steps=("make",), repairs=repairs))

    keys = [
        key(Repairs()),
        key(Repairs(overlay={"a": "one"})),
        key(Repairs(overlay={"a": "two"})),
        key(Repairs(overlay={"b": "one"})),
        key(Repairs(patches=("one", "two"))),
        key(Repairs(patches=("two", "one"))),
    ]
    assert len(set(keys)) == len(keys)
    assert key(Repairs(overlay={"a": "same-as-one"})) == keys[1]
    os.chmod(project.root / "one", 0o755)  # noqa: PTH101 - what is tested is that a mode counts
    assert key(Repairs(overlay={"a": "one"})) not in keys


def test_a_tree_is_laid_out_repaired_with_nothing_stored(project: Project) -> None:
    study_file(project, "fix.patch", FIX)
    revision = project.commit()
    recipe = Recipe(
        directory=".",
        steps=("make -C {build}",),
        env={"WHERE": "{build}"},
        repairs=Repairs(patches=("fix.patch",)),
    )
    home = project.root / "by hand"
    laid = project.builder().check_out(Subject(revision=revision, variant="plain"), recipe, str(home))
    assert laid.directory == str(home / "tree")
    assert laid.lines == (f"make -C '{home}/tree'",)
    assert laid.environment["WHERE"] == str(home / "tree")
    assert "8" in (home / "tree/program.c").read_text()
    assert laid.failure is None
    assert not project.builds.exists() or not list(project.builds.glob("*/built.json"))


def test_a_tree_that_cannot_be_repaired_is_laid_out_as_far_as_it_got(project: Project) -> None:
    study_file(project, "fix.patch", FIX.replace("7", "9"))
    subject = Subject(revision=Revision(id=project.commit().id), variant="plain")
    laid = project.builder().check_out(subject, patched("fix.patch"), str(project.root / "hand"))
    assert laid.failure is not None
    assert "hunk 1" in laid.failure.message
    assert (Path(laid.directory) / "program.c.rej").exists()
