"""Pairs of blocks: samples of a block are compared, and noisy ones only where too few others exist."""

from __future__ import annotations

from dataclasses import replace

from perftrail.model.noisy_samples import ENOUGH_QUIET, FlaggedSample
from perftrail.present.report.comparisons import SubjectComparison
from perftrail.results.pairs import BUSY, Pair, decides, paired, usable_pairs
from perftrail.stats.comparison import Rule, compare


def values(*numbers: float, busy: frozenset[int] = frozenset()) -> dict[tuple[str, ...], FlaggedSample]:
    return {
        (f"block {at}",): FlaggedSample(value=number, flags=("busy",) if at in busy else ())
        for at, number in enumerate(numbers)
    }


def test_values_of_the_same_block_are_a_pair() -> None:
    second: dict[tuple[str, ...], FlaggedSample] = {
        ("block 2",): FlaggedSample(value=6.0),
        ("block 0",): FlaggedSample(value=4.0),
        ("block 7",): FlaggedSample(value=9.0),
    }
    assert paired(values(1.0, 2.0, 3.0), second) == [
        Pair(first=1.0, second=4.0, quiet=True),
        Pair(first=3.0, second=6.0, quiet=True),
    ]


def test_values_not_above_zero_have_no_ratio() -> None:
    assert paired(values(0.0, 1.0, 2.0), values(1.0, -1.0, 3.0)) == [Pair(first=2.0, second=3.0, quiet=True)]


def test_a_pair_is_quiet_where_nothing_disturbed_either() -> None:
    pairs = paired(values(1.0, 1.0, 1.0, busy=frozenset({0})), values(1.0, 1.0, 1.0, busy=frozenset({1})))
    assert [pair.quiet for pair in pairs] == [False, False, True]


def test_disturbed_pairs_are_left_out_only_where_enough_others_are_left() -> None:
    many = [1.0] * (ENOUGH_QUIET + 1)
    enough = paired(values(*many, busy=frozenset({0})), values(*many))
    too_few = paired(values(*many, busy=frozenset({0, 1})), values(*many))
    assert [len(each) for each in usable_pairs([enough])] == [ENOUGH_QUIET]
    assert [len(each) for each in usable_pairs([too_few])] == [len(many)]


def test_points_have_enough_quiet_pairs_together_if_each_has_one() -> None:
    five = paired(values(*[1.0] * 5, busy=frozenset({0})), values(*[1.0] * 5))
    lost = paired(values(1.0, busy=frozenset({0})), values(1.0))
    assert [len(each) for each in usable_pairs([five] * 3)] == [4, 4, 4]
    assert [len(each) for each in usable_pairs([five] * 2)] == [5, 5]
    assert [len(each) for each in usable_pairs([five, five, five, lost])] == [5, 5, 5, 1]


def test_times_of_which_one_was_disturbed_decide_nothing() -> None:
    quiet, disturbed = Pair(first=1.0, second=2.0, quiet=True), Pair(first=1.0, second=2.0, quiet=False)
    assert decides("s", [quiet, quiet])
    assert not decides("s", [quiet, disturbed])
    assert decides("B", [quiet, disturbed])


def test_noisy_samples_are_never_reported_as_a_change() -> None:
    first, second = [1.0 + 0.001 * n for n in range(20)], [1.3 + 0.001 * n for n in range(20)]
    found = SubjectComparison(
        name="new",
        where="",
        reference="old",
        benchmark="dict",
        metric="time",
        unit="s",
        better="lower",
        ratios=(1.3,),
        comparison=compare(first, second, Rule(most=20)),
    )
    assert (found.verdict, found.words) == ("slower", "worse")
    assert (replace(found, decides=False).verdict, replace(found, decides=False).words) == ("unclear", BUSY)
