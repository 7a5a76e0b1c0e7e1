"""Building on in the tree of an earlier revision, with real make and gcc."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.builds.builder import LocalBuilder
from perftrail.builds.incremental import FIRST_CHECK, RAREST_CHECK, TreeState, listing, move, read_state
from perftrail.errors import StaleBuilds
from perftrail.model.build import Built, Recipe
from perftrail.model.subject import Revision, Subject
from perftrail.process.launcher import Launcher
from tests.builds.subject_builder import Place, recipe
from tests.sources.repositories import Repository

RIGHT = """\
all: program
program: main.o part.o
\t$(CC) -o $@ main.o part.o
main.o: main.c number.h
part.o: part.c number.h
"""
"""A makefile that names all that its objects are made of."""

STALE = RIGHT.replace(" number.h", "")
"""One that forgets the header, as many do."""

FILES = {
    "Makefile": RIGHT,
    "main.c": '#include <stdio.h>\n#include "number.h"\nint part(void);\n'
    'int main(void) { printf("%d\\n", N + part()); return 0; }\n',
    "part.c": '#include "number.h"\nint part(void) { return N; }\n',
    "number.h": "#define N 1\n",
    "README": "one\n",
}
INCREMENTAL = replace(recipe("make", outputs=("program",)), incremental=True)


def made(place: Place | LocalBuilder, revision: Revision, how: Recipe = INCREMENTAL) -> Built:
    """Make a subject, as another perftrail each time unless a builder is given."""
    builder = place.builder() if isinstance(place, Place) else place
    outcome = builder.build(Subject(revision=revision, variant="plain"), how)
    assert isinstance(outcome, Built), outcome
    return outcome


def said(built: Built) -> str:
    program = Path(built.directory) / "program"
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def compiled(built: Built) -> int:
    """How many objects were compiled for a build."""
    return Path(built.log).read_text().count(" -c ")


def test_only_what_changed_is_compiled_and_the_artefact_is_that_of_a_clean_build(place: Place) -> None:
    first = made(place, place.commit(FILES))
    changed = place.commit({**FILES, "part.c": FILES["part.c"].replace("N", "N + 1")})
    second = made(place, changed)
    assert (compiled(first), compiled(second)) == (2, 1)
    assert (said(first), said(second)) == ("2", "3")
    clean = made(place, changed, replace(INCREMENTAL, incremental=False))
    assert second.artefact == clean.artefact != first.artefact
    assert (Path(second.directory, "program").read_bytes()) == Path(clean.directory, "program").read_bytes()


def test_a_revision_that_only_changed_the_docs_is_the_same_artefact_on_disk(place: Place) -> None:
    first = made(place, place.commit(FILES))
    docs = made(place, place.commit({**FILES, "README": "two\n"}))
    assert compiled(docs) == 0
    assert docs.artefact == first.artefact
    assert Path(docs.directory).resolve() == Path(first.directory).resolve()


def test_a_build_stays_as_it_is_when_a_later_revision_is_built_in_its_tree(place: Place) -> None:
    first = made(place, place.commit(FILES))
    made(place, place.commit({**FILES, "number.h": "#define N 5\n"}))
    assert said(first) == "2"
    again = made(place.builder(), Revision(id=place.repository.git("rev-parse", "HEAD~1").strip()))
    assert again.reused
    assert said(again) == "2"


def test_going_back_and_forth_gives_each_revision_its_own(place: Place) -> None:
    one = place.commit(FILES)
    two = place.commit({**FILES, "number.h": "#define N 2\n", "extra/new.h": "\n"})
    three = place.commit({name: text for name, text in FILES.items() if name != "README"})
    assert [said(made(place, each)) for each in (two, one, three)] == ["4", "2", "2"]


def test_stale_objects_are_found_reported_and_discarded(place: Place) -> None:
    stale = {**FILES, "Makefile": STALE}
    one, two = place.commit(stale), place.commit({**stale, "number.h": "#define N 4\n"})
    builder = place.builder()
    made(builder, one)
    wrong = made(builder, two)
    assert said(wrong) == "2"
    with pytest.raises(StaleBuilds) as taken_back:
        builder.confirm()
    assert taken_back.value.keys == (wrong.key,)
    (news,) = builder.messages()
    assert news.startswith("incremental builds are off")
    assert "program" in news
    right = made(place, two)
    assert not right.reused
    assert said(right) == "8"
    assert "used tree" not in Path(right.log).read_text()
    assert made(place, one).reused


def test_one_in_many_builds_is_checked_without_being_asked(place: Place) -> None:
    stale = {**FILES, "Makefile": STALE}
    revisions = [
        place.commit({**stale, "number.h": f"#define N {number}\n"}) for number in range(FIRST_CHECK + 1)
    ]
    builder = place.builder()
    built = [made(builder, revision) for revision in revisions[:-1]]
    assert {said(each) for each in built} == {"0"}
    with pytest.raises(StaleBuilds) as taken_back:
        made(builder, revisions[-1])
    assert taken_back.value.keys == tuple(each.key for each in built[1:])
    assert [said(made(place, revisions[number])) for number in (0, 1, FIRST_CHECK)] == ["0", "2", "20"]


def test_checks_become_rarer_as_they_are_passed_and_never_cease() -> None:
    state, gaps = TreeState(), []
    for _ in range(5):
        state = state.checked()
        gaps.append(state.gap)
    assert gaps == [20, 40, 64, 64, 64]
    assert gaps[-1] == RAREST_CHECK
    assert not TreeState(unchecked=("a",) * (FIRST_CHECK - 2)).check_due
    assert TreeState(unchecked=("a",) * (FIRST_CHECK - 1)).check_due


def test_a_check_that_is_passed_changes_nothing(place: Place) -> None:
    one, two = place.commit(FILES), place.commit({**FILES, "number.h": "#define N 3\n"})
    builder = place.builder()
    made(builder, one)
    second = made(builder, two)
    builder.confirm()
    assert builder.messages() == ()
    assert made(builder, two).reused
    assert said(second) == "6"
    third = made(place, place.commit({**FILES, "part.c": "int part(void) { return 7; }\n"}))
    assert (
        compiled(third) == 2
    )  # both, as the header is what it was before; nothing else is left of the check


def test_a_witness_is_compared_itself_also_when_a_later_build_in_its_tree_was_right(place: Place) -> None:
    stale = {**FILES, "Makefile": STALE}
    one, two = place.commit(stale), place.commit({**stale, "number.h": "#define N 4\n"})
    touched = {name: f"{text}/* again */\n" for name, text in stale.items() if name.endswith(".c")}
    three = place.commit({**stale, **touched, "number.h": "#define N 4\n"})
    builder = place.builder()
    made(builder, one)
    wrong, right = made(builder, two), made(builder, three)
    assert (said(wrong), said(right)) == ("2", "8")
    builder.confirm()
    with pytest.raises(StaleBuilds) as taken_back:
        builder.confirm([(Subject(revision=two, variant="plain"), INCREMENTAL)])
    assert taken_back.value.keys == (wrong.key,)
    assert "incremental builds are off" in builder.messages()[0]
    assert said(made(place, two)) == "8"


def test_a_witness_that_is_right_is_compared_once(place: Place) -> None:
    one, two, three = (place.commit({**FILES, "number.h": f"#define N {number}\n"}) for number in (1, 3, 5))
    builder = place.builder()
    made(builder, one)
    second = made(builder, two)
    made(builder, three)
    log = Path(second.log).with_suffix(".check.log")
    witnesses = [(Subject(revision=two, variant="plain"), INCREMENTAL)]
    builder.confirm(witnesses)
    assert "clean tree" in log.read_text()
    log.unlink()
    builder.confirm(witnesses)
    assert not log.exists()
    assert builder.messages() == ()
    assert said(made(place, place.commit({**FILES, "number.h": "#define N 6\n"}))) == "12"


def test_a_submodules_tie_is_that_of_the_checkout_and_no_difference(place: Place) -> None:
    library = Repository(place.root / "library")
    first, second = (library.commit({"lib.h": f"#define L {number}\n"}) for number in (1, 2))
    told = '[submodule "lib"]\n\tpath = deep/lib\n\turl = ../library\n'
    makefile = (
        "program: main.c deep/lib/lib.h\n\t$(CC) -o $@ main.c\n"
        "\tgit -C deep/lib rev-parse HEAD > at\n\techo made >> count\n"
    )
    main = '#include <stdio.h>\n#include "deep/lib/lib.h"\nint main(void) { printf("%d\\n", L); return 0; }\n'
    files = {"Makefile": makefile, "main.c": main, ".gitmodules": told}
    how = replace(INCREMENTAL, steps=("make", "git -C deep/lib status --short > state || :"))
    how = replace(how, outputs=("program", "at", "count", "state"))
    built = [
        made(place, place.commit({**files, "deep/lib": f"commit:{commit}", "README": str(number)}), how)
        for number, commit in enumerate((first, first, second))
    ]
    read = [
        {name: Path(each.directory, name).read_text().strip() for name in ("at", "count", "state")}
        for each in built
    ]
    assert [each["at"] for each in read] == [first, first, second]
    assert [each["count"].count("made") for each in read] == [1, 1, 2]
    assert [each["state"] for each in read] == ["", "", ""]
    assert [said(each) for each in built] == ["1", "1", "2"]
    assert "1 changed file" in Path(built[1].log).read_text()
    without = "program: main.c\n\techo 9 > $@\n\ttouch at count state\n"
    plain = made(place, place.commit({"main.c": main, "Makefile": without}), how)
    assert "clean tree" not in Path(plain.log).read_text()
    assert not list((place.builds / "worktrees").glob("*/tree/deep"))


def test_a_failure_is_believed_only_from_a_clean_tree(place: Place) -> None:
    how = replace(INCREMENTAL, steps=("test ! -e program && make",))
    made(place, place.commit(FILES), how)
    second = made(place, place.commit({**FILES, "number.h": "#define N 3\n"}), how)
    assert said(second) == "6"
    assert "built again in a clean tree" in Path(second.log).read_text()
    broken = place.commit({**FILES, "part.c": "int part(void) { return }\n"})
    failure = place.failed(broken, how)
    assert "part.c:1" in failure.message
    assert said(made(place, place.commit({**FILES, "number.h": "#define N 6\n"}), how)) == "12"


def test_outputs_that_name_their_directory_are_made_in_one_of_their_own(place: Place) -> None:
    wrapping = RIGHT.replace("all: program", "all: program wrapper") + (
        'wrapper: program\n\techo "exec $(CURDIR)/program" > $@\n'
    )
    how = replace(INCREMENTAL, outputs=("program", "wrapper"))
    revision = place.commit({**FILES, "Makefile": wrapping})
    builder = place.builder()
    built = made(builder, revision, how)
    assert not Path(built.directory).is_symlink()
    assert built.directory in Path(built.directory, "wrapper").read_text()
    assert "contain the name of their build directory" in builder.messages()[0]


def test_a_build_killed_in_a_used_tree_is_followed_by_a_clean_one(place: Place) -> None:
    first = made(place, place.commit(FILES))
    (state,) = (place.builds / "worktrees").glob("*/state.json")
    state.write_text(state.read_text().replace('"usable": true', '"usable": false'))
    (state.parent / "tree" / "part.o").write_bytes(b"half an object")
    second = made(place, place.commit({**FILES, "README": "two\n"}))
    assert compiled(second) == 2
    assert second.artefact == first.artefact


def test_two_perftrails_at_once_build_in_trees_of_their_own(place: Place) -> None:
    revisions = [place.commit({**FILES, "number.h": f"#define N {number}\n"}) for number in range(4)]

    def make(revision: Revision) -> str:
        with Launcher() as own:
            return said(made(place.builder(launcher=own), revision))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, revisions)) == ["0", "2", "4", "6"]


def test_a_tree_is_worth_what_its_last_clean_build_took(place: Place) -> None:
    slow = replace(INCREMENTAL, steps=("test -e program || sleep 0.2", "make"))
    for files in (FILES, {**FILES, "README": "two\n"}):
        made(place, place.commit(files), slow)
    (state,) = (place.builds / "worktrees").glob("*/state.json")
    assert 0.2 <= read_state(state).seconds < 60


def test_a_link_that_a_build_left_leads_no_revision_out_of_its_tree(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    how = replace(INCREMENTAL, steps=(f"make; test -e sub || ln -s {outside} sub",))
    made(place, place.commit(FILES), how)
    made(place, place.commit({**FILES, "sub/file": "mine\n"}), how)
    assert list(outside.iterdir()) == []


def test_moving_touches_only_what_two_revisions_do_not_share(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for tree, files in (
        (one, {"same": "s", "old/gone": "g", "kind": "file"}),
        (two, {"same": "s", "new": "n"}),
    ):
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
    (two / "kind").mkdir()
    (two / "kind" / "inside").write_text("i")
    before, stamp = listing(one), (one / "same").stat().st_mtime_ns
    (one / "product").write_text("built")
    changed = move(one, two, before=before, now=listing(two))
    assert sorted(changed) == ["kind", "kind/inside", "new", "old/gone"]
    assert sorted(str(path.relative_to(one)) for path in one.rglob("*")) == [
        "kind", "kind/inside", "new", "product", "same",
    ]  # fmt: skip
    assert (one / "same").stat().st_mtime_ns == stamp
    assert (one / "new").stat().st_mtime_ns > (one / "product").stat().st_mtime_ns


def test_a_change_in_paths_that_no_build_uses_is_no_other_build(place: Place) -> None:
    how = replace(recipe("make", outputs=("program",)), unaffected_by=("README", "docs/**"))
    one = made(place, place.commit(FILES), how)
    docs = made(place, place.commit({**FILES, "README": "two\n", "docs/deep/new.txt": "x"}), how)
    assert docs.reused
    assert docs.key == one.key
    code = made(place, place.commit({**FILES, "number.h": "#define N 2\n"}), how)
    assert not code.reused
