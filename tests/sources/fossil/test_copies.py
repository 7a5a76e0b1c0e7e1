"""Copies, check-outs and clones of a repository, which stay unchanged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import Label
from tests.sources.contents import ids, line, put
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, fossil, needs_fossil, serving

pytestmark = needs_fossil


def test_the_users_repository_stays_unchanged(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    line(repository, 3)
    repository.make()
    home = tmp_path / "project"
    home.mkdir()
    repository.path.rename(home / "p.fossil")
    (home / "p.fossil").chmod(0o444)
    before = (home / "p.fossil").read_bytes(), (home / "p.fossil").stat()
    source = opened(home / "p.fossil", label=Label(file="a", pattern="(.)"))
    history = source.history()
    source.within(f"{history[1].id}..")
    source.touched(history)
    put(source, history[0], tmp_path / "tree")
    assert ((home / "p.fossil").read_bytes(), (home / "p.fossil").stat()) == before
    assert [path.name for path in home.iterdir()] == ["p.fossil"]


def test_a_repository_in_write_ahead_mode_is_read_and_left_as_it_is(
    opened: Open, repository: FossilRepository, tmp_path: Path
) -> None:
    commits = line(repository, 2)
    with closing(sqlite3.connect(repository.make())) as database:
        database.execute("PRAGMA journal_mode = WAL")
    home = tmp_path / "project"
    home.mkdir()
    file = home / "p.fossil"
    repository.path.rename(file)
    assert ids(opened(file).history()) == commits
    assert [path.name for path in home.iterdir()] == ["p.fossil"]
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE event SET ecomment = 'edited' WHERE type = 'ci'")
        database.commit()
        assert {revision.summary for revision in opened(file).history()} == {"edited"}


def test_new_check_ins_are_seen_next_time(opened: Open, repository: FossilRepository) -> None:
    first = line(repository, 2)
    assert ids(opened().history()) == first
    more = repository.commit({"a": "more"})
    assert ids(opened().history()) == [*first, more]


def test_a_check_out_is_its_repository_up_to_its_current_revision(
    opened: Open, lived_in: tuple[Path, Path]
) -> None:
    file, checkout = lived_in
    fossil("update", "v1", directory=checkout)
    (checkout / "below").mkdir()
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    assert [each.summary for each in opened(checkout / "below").history()] == ["change 0", "change 1"]
    assert [each.summary for each in opened(file).history()] == ["change 0", "change 1", "change 2"]
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before


def test_private_check_ins_and_closed_leaves_are_check_ins(opened: Open, lived_in: tuple[Path, Path]) -> None:
    file, checkout = lived_in
    (checkout / "a").write_text("private\n")
    fossil("commit", "-m", "secret", "--private", "--no-warnings", directory=checkout)
    fossil("update", "v1", directory=checkout)
    (checkout / "a").write_text("closed\n")
    fossil("commit", "-m", "dead end", "--branch", "dead", "--close", "--no-warnings", directory=checkout)
    source = opened(file)
    assert [each.summary for each in source.history("v1..private")] == ["change 1", "change 2", "secret"]
    assert [each.summary for each in source.history("v1..dead")] == ["change 1", "dead end"]


def test_an_edited_comment_is_the_one_that_counts(opened: Open, lived_in: tuple[Path, Path]) -> None:
    file, _ = lived_in
    fossil("amend", "v2", "-m", "said better", "-R", str(file), directory=file.parent)
    assert opened(file).history()[-1].summary == "said better"


def test_an_address_is_cloned_once_and_pulled_when_something_is_missing(
    opened: Open, lived_in: tuple[Path, Path], tmp_path: Path
) -> None:
    file, checkout = lived_in
    with serving(file) as address:
        assert len(opened(address).history()) == 3
        (checkout / "a").write_text("more\n")
        fossil("commit", "-m", "more", "--tag", "v3", "--no-warnings", directory=checkout)
        assert len(opened(address).history()) == 3
        source = opened(address, range="v2..v3")
        history = source.history()
        assert [each.summary for each in history] == ["change 2", "more"]
        tree = put(source, history[-1], tmp_path / "tree")
        assert (tree / "a").read_text() == "more\n"
    assert len(opened(address).history()) == 4
    with pytest.raises(SourceError, match="cannot pull"):
        opened(address, range="v2..v9").history()


def test_a_clone_that_fails_says_why_and_keeps_the_password(opened: Open, user_cache: Path) -> None:
    before = set(user_cache.rglob("copy.fossil"))
    with pytest.raises(SourceError, match="fossil cannot clone it") as caught:
        opened("http://user:secret@127.0.0.1:9/p").history()
    assert "secret" not in str(caught.value)
    assert set(user_cache.rglob("copy.fossil")) == before
    assert not list(user_cache.rglob("making.fossil"))


def test_a_directory_without_a_repository_is_reported(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "text").write_text("no database, but longer than a header of one would be: " * 10)
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE other (x)")
        database.commit()
    with pytest.raises(SourceError, match="is not a Fossil check-out"):
        opened(tmp_path / "plain").history()
    with pytest.raises(SourceError, match="no such file"):
        opened(tmp_path / "nothing").history()
    with pytest.raises(SourceError, match="is not a readable Fossil repository"):
        opened(tmp_path / "text").history()
    with pytest.raises(SourceError, match="fossil cannot read it"):
        opened(tmp_path / "other.db").history()


def test_a_check_out_whose_repository_is_gone_says_so(opened: Open, lived_in: tuple[Path, Path]) -> None:
    file, checkout = lived_in
    file.unlink()
    with pytest.raises(SourceError, match="does not exist; name another"):
        opened(checkout).history()


def test_the_environment_and_the_users_settings_change_nothing(
    opened: Open, repository: FossilRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = line(repository, 2)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".sqliterc").write_text(f".shell touch {tmp_path}/pwned\n.mode box\n")
    for name in ("HOME", "FOSSIL_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("USER", raising=False)
    assert ids(opened().history()) == commits
    assert not (tmp_path / "pwned").exists()
    assert [path.name for path in (tmp_path / "home").iterdir()] == [".sqliterc"]
