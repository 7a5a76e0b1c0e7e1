"""The commands that explain the culprits of a search, continue it, or settle what its answer leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from perftrail.find.answer import FindTable
from perftrail.model.program import MANUAL
from perftrail.model.recipe import PLAIN
from perftrail.model.suite import SuiteBenchmark
from perftrail.model.target import WORKS, Target
from perftrail.model.wording import percent
from perftrail.present.output_settings import next_line
from perftrail.present.shared_sentences import shell_words
from perftrail.search import Budget
from perftrail.search.budget import BUILDS_SPENT, INVOCATIONS_SPENT, TIME_SPENT
from perftrail.search.words import amount
from perftrail.stats.scale import Scale
from perftrail.verbs.after_find import named_culprits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.find.answer import FindAnswer
    from perftrail.model.benchmark import Benchmark

MORE_TIME = 3
"""Factor on the spent time, builds or invocations for the budget that perftrail proposes."""

MOST_TIME = 20
"""Largest such factor: a search that needs more needs another metric, or a larger threshold."""

MOST_COMMANDS = 5

MOST_EXPLAINED = 2
"""Largest number of culprits with a command that explains them."""

MOST_METRICS = 3
"""Largest number of metrics in one such command."""

LOWER_CONFIDENCE = 0.95
"""A claim at this confidence needs a fifth of the evidence that 99 % needs."""

NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCommand:
    """The command of a search, to write others like it.

    `study` are the words that name the study and its store, `options` the other options, without a budget. `threshold`,
    `confidence` and `budget` are those of the search, from the command or the study. `benchmarks` are the study's.
    """

    study: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    threshold: float
    confidence: float = 0.99
    budget: Budget = NO_BUDGET
    benchmarks: Mapping[str, Benchmark]

    def text(self, *more: str) -> str:
        """Return the command for a shell, with these options in place of options with the same names.

        >>> found = FindCommand(options=("--metric", "wall", "--all"), threshold=0.05, benchmarks={})
        >>> found.text(), found.text("--metric", "work.cpu")
        ('perftrail find --metric wall --all', 'perftrail find --metric work.cpu')
        """
        replaced = set(more[::2]) | ({"--all"} if "--metric" in more else set())
        kept: list[str] = []
        words = iter(self.options)
        for word in words:
            if word not in replaced:
                kept.append(word)
            elif word != "--all":
                next(words, None)
        return f"perftrail find{shell_words((*self.study, *kept, *more))}"


def next_commands(answer: FindAnswer | FindTable, command: FindCommand) -> Iterator[str]:
    """Yield what explains the culprits, continues a search that a budget stopped, and settles what it left open.

    Each is a command with its purpose, or what to write into the study before a command.
    """
    answers = answer.answers if isinstance(answer, FindTable) else (answer,)
    lines = dict.fromkeys(
        (
            *_explaining(answer, command),
            *_more_budget(answer, command),
            *(line for each in answers for line in _settling(each, command, alone=len(answers) == 1)),
            *_larger_threshold(answers, command),
        )
    )
    yield from map(next_line, islice(lines, MOST_COMMANDS))


def detectable_words(answer: FindAnswer, command: FindCommand) -> str:
    """Return the minimum detectable change of an unclear answer, if it exceeds the threshold; else an empty text."""
    least = answer.answer.minimum_detectable
    if not answer.unclear or not isinstance(answer.target, Target):
        return ""
    if not command.threshold < least < math.inf:
        return ""
    found, threshold = (
        amount(each, answer.answer.scale, answer.unit_of_differences) for each in (least, command.threshold)
    )
    return f"minimum detectable change with these samples: {found}; the threshold is {threshold}"


def _explaining(answer: FindAnswer | FindTable, command: FindCommand) -> Iterator[str]:
    """Yield how to explain the culprits, only at the points and metrics that they changed."""
    for culprit in named_culprits(answer)[:MOST_EXPLAINED]:
        metrics = [name for name in culprit.metrics if name != WORKS]
        if metrics:
            named = (
                metrics if len(metrics) <= MOST_METRICS else []
            )  # `explain` reads all of them from the stored answer
            revision = (culprit.inner or culprit.revision).short
            words = (revision, *command.study, *(word for name in named for word in ("--metric", name)))
            yield f"perftrail explain{shell_words(words)}    name the functions that are responsible"


def _more_budget(answer: FindAnswer | FindTable, command: FindCommand) -> Iterator[str]:
    """Yield how to continue a search that a budget stopped.

    A time budget is that of one command, so the proposal is based on the time that this command spent.
    """
    answers = answer.answers if isinstance(answer, FindTable) else (answer,)
    stopped = {each.answer.reason for each in answers}
    factor = max((_factor(each, command.threshold) for each in answers), default=MORE_TIME)
    minutes = max(1, math.ceil(factor * (answer.new.seconds or answer.seconds) / 60))
    again = command.text("--budget", f"{minutes}min")
    if TIME_SPENT in stopped:
        yield f"{again}    continue this search from what is stored"
    for reason, key, limit, spent in (
        (BUILDS_SPENT, "budget_builds", command.budget.builds, answer.builds),
        (INVOCATIONS_SPENT, "budget_invocations", command.budget.invocations, answer.invocations),
    ):
        if reason in stopped and limit is None:
            yield f"{again}    continue this search without its limit of invocations"
        elif reason in stopped:
            wanted = math.ceil(factor * spent)
            yield f"set {key} = {wanted} under [find], and run {command.text()}: it continues from the stored samples"


def _factor(answer: FindAnswer, threshold: float) -> float:
    """Return how many times as much work detects a change of the threshold, within limits.

    The minimum detectable change falls with the square root of the number of samples.
    """
    least = answer.answer.minimum_detectable
    if not answer.unclear or not 0.0 < least < math.inf:
        return MORE_TIME
    if answer.answer.scale is Scale.RATIO:
        least, threshold = math.log1p(least), math.log1p(threshold)
    return min(MOST_TIME, max(MORE_TIME, (least / threshold) ** 2))


def _settling(answer: FindAnswer, command: FindCommand, *, alone: bool) -> Iterator[str]:
    """Yield what settles one metric's answer. `alone`: the search was about no other metric."""
    target, found = answer.target, answer.answer
    if not isinstance(target, Target):
        return
    variant = () if alone or target.variant == PLAIN else ("--variant", target.variant)
    metric = () if alone else _metric(target)
    if not answer.unclear:
        yield from _inside_merges(answer, command, metric)
        if found.unseen is not None and not found.changes and "--thorough" not in command.options:
            search = command.text(*metric, "--thorough")
            yield f"{search}    look into revisions between the measured ones, too"
        return
    if not math.isfinite(found.minimum_detectable):
        purpose = "build and run three revisions, after you correct the study"
        yield f"perftrail check{shell_words(command.study)} --try 3    {purpose}"
        return
    hidden = found.minimum_detectable > command.threshold
    yield from _quieter_metrics(answer, target, command, variant, hidden=hidden)
    if found.layouts_hide and answer.linked and not answer.can_relink:
        again = command.text(*metric)
        yield f"add relink lines to [build] ({MANUAL}), and run {again}: it measures several memory layouts"
    yield from _smaller_range(answer, command, metric)
    if (
        any(each.evidence < each.needed for each in found.suspected)
        and not hidden
        and command.confidence > LOWER_CONFIDENCE
        and not answer.stopped_by_budget
    ):
        search = command.text(*metric, "--confidence", f"{LOWER_CONFIDENCE:g}")
        yield f"{search}    certify the likely change with less evidence"


def _larger_threshold(answers: Sequence[FindAnswer], command: FindCommand) -> Iterator[str]:
    """Yield a search for changes that the samples can show: one search if this applies to every metric."""
    hidden = [
        (each.target, each.answer.minimum_detectable)
        for each in answers
        if each.unclear
        and isinstance(each.target, Target)
        and each.answer.scale is Scale.RATIO
        and command.threshold < each.answer.minimum_detectable < math.inf
    ]
    searches: list[tuple[tuple[str, ...], float]] = [(_metric(target), least) for target, least in hidden]
    if hidden and len(hidden) == len(answers):
        searches = [((), max(least for _, least in hidden))]
    for metric, detectable in searches:
        if (least := _rounded_up(detectable)) < 1.0:
            larger = percent(least)
            search = command.text(*metric, "--threshold", larger.replace(" ", ""))
            yield f"{search}    search for changes of {larger} or more, which samples with this noise can show"


def _metric(target: Target) -> tuple[str, ...]:
    """Return the options that name one of several metrics."""
    return "--metric", target.text, *(() if target.variant == PLAIN else ("--variant", target.variant))


def _quieter_metrics(
    answer: FindAnswer, target: Target, command: FindCommand, variant: tuple[str, ...], *, hidden: bool
) -> Iterator[str]:
    """Yield searches of metrics that other load disturbs less, if the metric is a time.

    `hidden`: the samples cannot show a change of the threshold.
    """
    busy = bool(answer.noisy or answer.discarded)
    benchmark = command.benchmarks[target.benchmark]
    name, bracket, point = target.name.removeprefix(f"{target.benchmark}.").partition("[")
    if isinstance(benchmark, SuiteBenchmark):
        return  # a suite measures the time itself
    if not (busy or hidden) or target.unit != "s" or name not in {**benchmark.measured, **benchmark.metrics}:
        return
    where = f"{bracket}{point}"
    if busy and name == "wall":
        search = command.text("--metric", f"{target.benchmark}.cpu{where}", *variant)
        yield f"{search}    search CPU time: other processes disturb it less than wall time"
    purpose = "instruction counts hardly depend on other load"
    known = (
        counting
        for counting, each in command.benchmarks.items()
        if "instructions" in each.counters
        and (each.command, each.parameters) == (benchmark.command, benchmark.parameters)
    )
    if counting := next(known, ""):
        search = command.text("--metric", f"{counting}.instructions{where}", *variant)
        yield f"{search}    {purpose}"
        return
    counting = f"{target.benchmark}-instructions"
    search = command.text("--metric", f"{counting}.instructions{where}", *variant)
    yield (
        f'add [benchmark.{counting}] with the same command and counters = ["instructions"], and run {search}: {purpose}'
    )


def _inside_merges(answer: FindAnswer, command: FindCommand, metric: tuple[str, ...]) -> Iterator[str]:
    """Yield a search of each merge whose culprit commit was not located: the range before and after it."""
    for number, inside in answer.inside.items():
        position = answer.answer.changes[number].positions[-1]
        if inside.origin == "unclear" and position > 0:
            ends = f"{answer.revisions[position - 1].short}..{answer.revisions[position].short}"
            yield f"{command.text(*metric, '--range', ends)}    search only the branch of {inside.merge.revision.short}"


def _smaller_range(answer: FindAnswer, command: FindCommand, metric: tuple[str, ...]) -> Iterator[str]:
    """Yield a search of only the revisions between the outermost ones that can be built."""
    revisions, found = answer.revisions, answer.answer
    if not found.suspected and not found.changes:
        unusable = {each.revision.id for each in answer.unusable}
        usable = [number for number, each in enumerate(revisions) if each.id not in unusable]
        first, last, purpose = usable[0], usable[-1], "search only between the outermost usable revisions"
    else:
        return
    if 0 < last - first < len(revisions) - 1:
        ends = f"{revisions[first].short}..{revisions[last].short}"
        yield f"{command.text(*metric, '--range', ends)}    {purpose}"


def _rounded_up(share: float) -> float:
    """Return a share with two digits, not smaller.

    >>> _rounded_up(0.1234), _rounded_up(0.012)
    (0.13, 0.012)
    """
    unit: float = 10.0 ** (math.floor(math.log10(share)) - 1)
    return round(math.ceil(share / unit - 1e-9) * unit, 12)
