"""Which changes of a tree an observed build can see."""

from __future__ import annotations

import pytest

from perftrail.model.reads import BuildReads, TreeFile, patterns_of

READS = BuildReads(
    opened=frozenset({"main.c", "moved"}),
    looked_up=frozenset({"ChangeLog", "config.h", "contrib"}),
    listed=frozenset({"", "src"}),
)

FILES = {
    name: TreeFile(mode="100644", content="1")
    for name in ("main.c", "ChangeLog", "src/a.c", "docs/a", "docs/b/c", "moved/d", "link")
}
TREE = {**FILES, "link": TreeFile(mode="120000", content="1")}


def changed(**files: TreeFile | None) -> dict[str, TreeFile]:
    """Return the tree with changed, new and (`None`) removed files; ``__`` stands for a slash."""
    named = {name.replace("__", "/").replace("_dot_", "."): file for name, file in files.items()}
    return {name: file for name, file in {**TREE, **named}.items() if file is not None}


def file(content: str = "2", mode: str = "100644") -> TreeFile:
    return TreeFile(mode=mode, content=content)


@pytest.mark.parametrize(
    "other",
    [
        changed(ChangeLog=file()),
        changed(docs__a=file()),
        changed(docs__new=file()),
        changed(docs__a=None),
        changed(docs__new__deep=file()),
        changed(src__a_dot_c=file()),
        changed(docs__a=file("1", "100755")),
    ],
)
def test_a_build_does_not_see_these_changes(other: dict[str, TreeFile]) -> None:
    assert READS.key(other) == READS.key(TREE)


@pytest.mark.parametrize(
    "other",
    [
        changed(main_dot_c=file()),
        changed(main_dot_c=file("1", "100755")),
        changed(moved__d=file()),
        changed(moved__new=file()),
        changed(ChangeLog=None),
        changed(ChangeLog=file("1", "100755")),
        changed(config_dot_h=file()),
        changed(contrib__x=file()),
        changed(src__new=file()),
        changed(src__b__new=file()),
        changed(new=file()),
        changed(new__x=file()),
        changed(link=file("2", "120000")),
        changed(link=file("1")),
        changed(docs__a=file("1", "120000")),
        changed(docs__module=file("1", "160000")),
        changed(docs___dot_gitattributes=file()),
        {name: each for name, each in TREE.items() if not name.startswith("docs/")},
    ],
)
def test_a_build_may_see_these_changes(other: dict[str, TreeFile]) -> None:
    assert READS.key(other) != READS.key(TREE)


def test_an_incomplete_observation_claims_nothing() -> None:
    both = READS | BuildReads(opened=frozenset({"docs/a"}), incomplete="why")
    assert both.unread(["docs/b/c"]) == frozenset()
    assert (READS | BuildReads(opened=frozenset({"docs/a"}))).unread(["docs/a", "docs/b/c"]) == {"docs/b/c"}


def test_patterns_cover_whole_directories_and_no_read_file() -> None:
    every = ["a.c", "NEWS", "t[1]", "docs/a", "docs/b/c", "lib/b.c", "lib/doc/x", "lib/doc/y"]
    unread = {"NEWS", "t[1]", "docs/a", "docs/b/c", "lib/doc/x", "lib/doc/y"}
    assert patterns_of(unread, every) == ("NEWS", "docs", "lib/doc")
