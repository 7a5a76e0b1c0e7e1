"""A profile of both ends as a prior: pure weights, names of functions from git's diffs, and a whole search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.find import end_profiles
from perftrail.find.answer import FindAnswer, FindRequest, FindTable
from perftrail.find.find import Find
from perftrail.find.priors import ProfiledFunctions, profile_priors
from perftrail.measure.events import Profiling, TooLongForBudget
from perftrail.model.patch import TouchedFile
from perftrail.model.study import Study
from perftrail.model.target import resolve
from perftrail.opening import open_session
from perftrail.search import Budget
from perftrail.sources.git import GitSource
from tests.measure.fake_session import drain
from tests.sources.repositories import Repository


def touched(*files: tuple[str, tuple[str, ...]]) -> tuple[TouchedFile, ...]:
    return tuple(TouchedFile(path=path, names=frozenset(names)) for path, names in files)


MOVED = ProfiledFunctions(
    moved=(("tree::Node<int>::insert(int)", "tree.cc"), ("read", "io.c")), runs=(("main", "main.c"),)
)


def test_revisions_that_touch_moved_functions_share_most_of_the_prior() -> None:
    revisions = [
        (),
        touched(("src/tree.cc", ("insert", "void"))),
        touched(("src/tree.cc", ("insert",)), ("doc/x", ())),
        touched(("other/tree.cc", ("erase",))),
        touched(("src/io.c", ("read",))),
        touched(("src/main.c", ("main",))),
        touched(("lib/tree.h", ())),
        touched(("doc/x", ("insert",))),
        (),
    ]
    found = profile_priors(revisions, MOVED)
    assert found.weights is not None
    share = [weight / sum(found.weights[1:]) for weight in found.weights]
    even = 0.05 / 8
    assert share[1:] == pytest.approx(
        [
            0.65 / 4 + even,
            0.65 / 4 + even,
            0.1 / 2 + even,
            0.65 / 2 + even,
            0.2 + even,
            0.1 / 2 + even,
            even,
            even,
        ]
    )
    assert found.reasons == (
        "a profile of both ends: 3 of 8 revisions touch a function whose cost, or the cost of its calls, moved; "
        "these revisions have 67 % of the prior",
    )


def test_without_a_moved_function_or_a_revision_that_touches_one_the_prior_is_even() -> None:
    revisions = [(), touched(("a.c", ("f",))), touched(("b.c", ("g",)))]
    assert profile_priors(revisions, ProfiledFunctions(moved=(), runs=(("f", "a.c"),))).weights is None
    assert profile_priors(revisions, ProfiledFunctions(moved=(("h", "a.c"),), runs=())).weights is None
    assert profile_priors((), MOVED).weights is None


def program(factor: int, *, notes: int) -> dict[str, str]:
    loop = f"    for (long i = 0; i < count * {factor}; i++)\n        sum += i ^ (sum >> 3);\n"
    return {
        "total.c": f"long total(long count)\n{{\n    long sum = 0;\n{loop}    return sum;\n}}\n",
        "shown.c": f"int shown(int value)\n{{\n    return value + {notes};\n}}\n",
        "main.c": "#include <stdio.h>\nlong total(long count);\nint shown(int value);\n\n"
        "int main(int count, char **words)\n{\n"
        '    printf("%ld %d %s\\n", total(count > 1 ? 0 : 1000000), shown(1), words[0]);\n    return 0;\n}\n',
    }


STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cc -g -O1 -o work main.c total.c shown.c"]
pin = false
outputs = ["work"]

[benchmark.work]
command = "{build}/work"

[measure]
quiet_threshold = 100

[find]
threshold = "30%"
"""


@dataclass(frozen=True)
class History:
    """Sixteen revisions: the 11th works eight times as much in `total`; the others change what `shown` prints."""

    repository: Path
    revisions: list[str]

    def study(self, directory: Path, text: str = STUDY) -> Study:
        file = directory / "perftrail.toml"
        file.write_text(text.replace('location = "repository"', f'location = "{self.repository}"'))
        return studyfile.load(str(file))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A repository that tests only read."""
    repository = Repository(tmp_path_factory.mktemp("history") / "repository")
    revisions = [
        repository.commit(program(1 if number < 11 else 8, notes=number), subject=f"n {number}")
        for number in range(16)
    ]
    return History(repository.path, revisions)


def test_git_names_the_functions_that_revisions_change(history: History, tmp_path: Path) -> None:
    study = history.study(tmp_path)
    with open_session(study, store=None) as session:
        assert isinstance(session.source, GitSource)
        revisions = session.source.history()
        found = session.source.touched_functions(revisions)
    by_file = [{each.path: each.names for each in files} for files in found]
    assert by_file[0] == {}
    assert set(by_file[5]) == {"shown.c"}
    assert "shown" in by_file[5]["shown.c"]
    assert "total" in by_file[11]["total.c"]


def test_a_profile_of_both_ends_guides_the_search_and_is_stored(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_profiles, "SAVED_SHARE", 1e6)
    study = history.study(tmp_path)
    with open_session(study, store=None) as session:
        target = resolve(study, "cpu")
        request = FindRequest(
            goal=(target,), range=None, threshold=0.3, confidence=0.99, budget=Budget(), priors=("profile",)
        )
        _, answer = drain(Find(session, request).events())
        profile = session.store.searches()[0].question["profile"]
    assert isinstance(answer, FindAnswer)
    assert isinstance(profile, dict)
    [stored] = profile.values()
    assert isinstance(stored, dict)
    assert answer.as_json()["changes"][0]["revisions"] == [history.revisions[11]]
    (reason,) = answer.as_json()["priors"]
    assert reason.startswith("a profile of both ends: 1 of 15 revisions touch a function")
    assert stored["moved"] == [["main", "main.c"], ["total", "total.c"]]  # main calls it
    assert answer.builds <= 7  # two of them beside the change, where layouts may explain it


def test_a_profile_that_needs_more_than_a_tenth_of_the_budget_is_left_out(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_profiles, "SAVED_SHARE", 1e6)
    study = history.study(tmp_path)
    with open_session(study, store=None) as session:
        request = FindRequest(
            goal=(resolve(study, "cpu"),),
            range=None,
            threshold=0.3,
            confidence=0.99,
            budget=Budget(seconds=5.0),
            priors=("profile",),
        )
        events = Find(session, request).events()
        decided = next(each for each in events if isinstance(each, Profiling | TooLongForBudget))
    assert isinstance(decided, TooLongForBudget)
    assert decided.limit == 0.5
    assert decided.seconds is not None
    assert decided.seconds > decided.limit


def test_each_benchmark_of_a_search_has_the_prior_of_its_own_profile(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_profiles, "SAVED_SHARE", 1e6)
    idle = '[benchmark.idle]\ncommand = "{build}/work idle"\n\n[measure]'
    study = history.study(tmp_path, STUDY.replace("[measure]", idle))
    with open_session(study, store=None) as session:
        request = FindRequest(
            goal=(resolve(study, "work.cpu"), resolve(study, "idle.cpu")),
            range=f"{history.revisions[6]}..{history.revisions[-1]}",
            threshold=0.5,
            confidence=0.99,
            budget=Budget(invocations=12),
            priors=("profile",),
        )
        _, table = drain(Find(session, request).events())
        stored = session.store.searches()[0].question["profile"]
    assert isinstance(table, FindTable)
    assert isinstance(stored, dict)
    moved = {name: functions["moved"] for name, functions in stored.items() if isinstance(functions, dict)}
    assert moved == {"work.cpu": [["main", "main.c"], ["total", "total.c"]], "idle.cpu": []}
    work, idle_answer = table.answers
    assert len(work.as_json()["priors"]) == 1
    assert idle_answer.as_json()["priors"] == []


def test_a_search_of_allocations_profiles_the_functions_that_allocate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_profiles, "SAVED_SHARE", 1e6)
    repository = Repository(tmp_path / "repository")
    for number in range(8):
        files = program(1, notes=number)
        blocks = 20 if number < 5 else 200
        files["total.c"] = "#include <stdlib.h>\n" + files["total.c"].replace(
            "    return sum;\n",
            f"    for (int i = 0; i < {blocks}; i++)\n"
            "        *(volatile char *)malloc(100) = 1;\n    return sum;\n",
        )
        repository.commit(files, subject=f"n {number}")
    (tmp_path / "perftrail.toml").write_text(
        STUDY.replace('command = "{build}/work"', 'command = "{build}/work"\ncounters = ["allocations"]')
    )
    study = studyfile.load(str(tmp_path / "perftrail.toml"))
    with open_session(study, store=None) as session:
        request = FindRequest(
            goal=(resolve(study, "allocated_bytes"),),
            range=None,
            threshold=0.3,
            confidence=0.99,
            budget=Budget(invocations=12),
            priors=("profile",),
        )
        _, answer = drain(Find(session, request).events())
        profile = session.store.searches()[0].question["profile"]
    assert isinstance(answer, FindAnswer)
    assert isinstance(profile, dict)
    [stored] = profile.values()
    assert isinstance(stored, dict)
    moved = stored["moved"]
    assert isinstance(moved, list)
    assert ["total", "total.c"] in moved  # hardly any of the instructions moved
    (reason,) = answer.as_json()["priors"]
    assert reason.startswith("a profile of both ends: 1 of 7 revisions touch a function")
