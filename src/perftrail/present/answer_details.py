"""Print the results of `find` and `run`: changes, merges, failures, cost, and the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from perftrail.find.answer import FindTable, by_culprit, noisy_words
from perftrail.measure.failure_groups import group_failures
from perftrail.model.program import unpinned_words
from perftrail.model.recipe import PLAIN
from perftrail.model.subject import Subject
from perftrail.model.target import Target, Working
from perftrail.model.wording import counted, escaped, listed, probability
from perftrail.present.answer_sentence import (
    MOST_NAMED,
    also_words,
    answer_facts,
    certificate_words,
    change_facts,
    change_sentence,
    cost_words,
    culprit_words,
    elapsed_words,
    further_doubts,
    headline_of,
    levels_of,
    revision_name,
)
from perftrail.present.console import output
from perftrail.present.failures import failure_group_lines, failure_words, further_lines, skipped_words
from perftrail.present.next_find import detectable_words, next_commands
from perftrail.present.output_settings import next_line
from perftrail.present.shared_sentences import capitalised, shell_words
from perftrail.search.words import COMPARED, amount, moved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.find.answer import FindAnswer, InsideMerge, UnusableRevision
    from perftrail.measure.invocation_runner import Disagreement
    from perftrail.model.source import Pins
    from perftrail.present.next_find import FindCommand
    from perftrail.search import Change
    from perftrail.verbs.run import RunReport


LONGEST_LINE = 400


def headline(answer: FindAnswer) -> str:
    """Return the answer in one line: verdict, revision, probability, effect."""
    return headline_of([answer_facts(answer)])


def inside_words(inside: InsideMerge) -> Iterator[str]:
    """Yield the origin of a merge's change, merge by merge."""
    merge, confidence = inside.merge.revision.short, probability(inside.confidence)
    match inside.origin:
        case "branch":
            yield f"{merge} is a merge, and the change came with the branch ({confidence}):"
            candidates = inside.candidates
            if len(candidates) > 1:
                yield f"  one of {len(candidates)} of its revisions, {candidates[0].short} to {candidates[-1].short}"
            yield from (f"  {revision_name(revision)}" for revision in candidates[:MOST_NAMED])
            if len(candidates) > MOST_NAMED:
                yield f"  and {len(candidates) - MOST_NAMED} more; --json names all"
        case "trunk":
            yield f"{merge} is a merge, but the change came from the trunk: {inside.reason} ({confidence})"
        case "combination":
            yield f"{merge} is a merge, and only both sides together cause the change: {inside.reason} ({confidence})"
        case _:
            yield f"{merge} is a merge, and the origin of the change in it is unclear: {inside.reason}"
    if inside.inside is not None:
        yield from inside_words(inside.inside)


def broken_range_words(answer: FindAnswer) -> Iterator[str]:
    """Yield the broken ranges of the history."""
    for failed_range in answer.broken_ranges:
        first, last = answer.revisions[failed_range.first], answer.revisions[failed_range.last]
        where = (
            first.short
            if first == last
            else f"{first.short} to {last.short}, {counted(failed_range.tried, 'revision')} tried"
        )
        if failed_range.before is None:
            neighbours = (
                f"usable from {answer.revisions[failed_range.after].short} on"
                if failed_range.after is not None
                else ""
            )
        elif failed_range.after is None:
            neighbours = (
                f"after {answer.revisions[failed_range.before].short}, and no later revision is usable"
            )
        else:
            before, after = answer.revisions[failed_range.before], answer.revisions[failed_range.after]
            neighbours = f"after {before.short}, usable again at {after.short}"
        cause = "The study skips" if failed_range.stage == "skipped" else f"Broken ({failed_range.stage})"
        yield f"{cause}: {where}{f'; {neighbours}' if neighbours else ''}"


def pins_words(pins: Pins) -> Iterator[str]:
    """Yield which of several sources was searched, and the pinned revisions of the others; nothing for one source."""
    if text := str(pins):
        yield escaped(text, longest=LONGEST_LINE)


def noise_words(answer: FindAnswer) -> Iterator[str]:
    """Yield how noisy samples were treated, and why memory layouts are not pinned."""
    if answer.unpinned:
        yield escaped(unpinned_words(answer.unpinned), longest=LONGEST_LINE)
    if answer.repeated:
        yield f"repeated {counted(answer.repeated, 'run')} with an end that retry_on names, which is no result"
    if answer.discarded:
        yield f"discarded and repeated {counted(answer.discarded, 'noisy sample')}"
    no_change = answer.answer.verdict == "none"
    yield from noisy_words(answer.noisy, no_change=no_change, mostly=answer.mostly_noisy)


def reboot_words(answer: FindAnswer) -> Iterator[str]:
    """Yield that the machine was rebooted during the search, with the consequence for levels, and other machines."""
    if len(answer.boots) > 1:
        yield (
            f"the machine was rebooted during the search ({len(answer.boots)} boot sessions); levels of different "
            "sessions are compared only through revisions measured in both"
        )
    yield from (escaped(each, longest=LONGEST_LINE) for each in answer.other_machines)


def note_words(answer: FindAnswer, change: Change) -> str:
    """Return that the culprit's message mentions speed, if that raised its prior; else an empty text."""
    words_in_messages = answer.notes(change)
    if len(change.positions) > 1 or not words_in_messages:
        return ""
    ((revision, word),) = words_in_messages.items()
    return f"its message mentions performance ({escaped(word)}): “{escaped(revision.summary)}”"


def unusable_words(answer: FindAnswer | FindTable, unusable: Sequence[UnusableRevision]) -> str:
    """Return the unusable revisions, by cause: each with its log, and the line of the study file that caused it."""
    unusable_by_subject = {
        Subject(revision=each.revision, variant=PLAIN): each
        for each in sorted(unusable, key=lambda each: answer.revisions.index(each.revision))
    }
    failures = {subject: each.failure for subject, each in unusable_by_subject.items()}
    logs = {subject: failure.log for subject, failure in failures.items()}
    failure_groups = group_failures(tuple(failures), failures)
    lines: list[str] = []
    for group in failure_groups[:MOST_NAMED]:
        lines += (f"  {line}" for line in failure_group_lines(group, logs=logs))
        causes = dict.fromkeys(unusable_by_subject[subject].study_line for subject in group.subjects)
        if named := [escaped(cause, longest=LONGEST_LINE) for cause in causes if cause]:
            lines.append(f"      see {listed(named, 'and')}")
    if len(failure_groups) > MOST_NAMED:
        lines.append(f"  and {counted(len(failure_groups) - MOST_NAMED, 'more cause')}; --json names all")
    searched_for_failures = not isinstance(answer, FindTable) and isinstance(answer.target, Working)
    heading = "Failed:" if searched_for_failures else "Unusable revisions:"
    return "\n".join([heading, *lines])


COLUMNS = ("revision", "metric", "change", "", "levels", "probability")


def print_table(table: FindTable, command: FindCommand, *, elapsed: float = 0.0) -> None:
    """Print a row for each change, grouped by revision; then the unchanged metrics."""
    console = output()
    changes_by_culprit = by_culprit(table.answers)
    console.print(Text(table_headline(table), style="bold"))
    for line in pins_words(table.pins):
        console.print(Text(f"  {line}"))
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in COLUMNS:
        rows.add_column(column)
    for changes in changes_by_culprit.values():
        for index, (answer, number) in enumerate(changes):
            rows.add_row(*map(Text, _row(answer, number, with_culprit=index == 0)))
    if changes_by_culprit:
        console.print(rows)
        for changes in changes_by_culprit.values():
            if (note := two_sided(changes)) is not None:
                console.print(Text(f"  {_candidates(*changes[0])}: {note}", style="yellow"))
        for line in (*_merges(changes_by_culprit.values()), *_unexplained(table), *table_reservations(table)):
            console.print(Text(f"  {line}"))
    for line in unchanged(table, command):
        console.print(Text(line))
    for line in table_doubts(table):
        console.print(Text(line, style="yellow"))
    console.print()
    console.print(Text("\n".join((cost_words(table), *elapsed_words(table, elapsed)))))
    notes = (line for answer in table.answers for line in (*reboot_words(answer), *answer.priors))
    for line in dict.fromkeys((*table_noise_words(table), *notes)):
        console.print(Text(f"{capitalised(line)}."))
    unusable = {each.revision.id: each for answer in table.answers for each in answer.unusable}
    if unusable:
        console.print(Text(unusable_words(table, tuple(unusable.values()))))


def table_headline(table: FindTable) -> str:
    """Return how many revisions changed how many metrics, and their names."""
    return headline_of([answer_facts(answer) for answer in table.answers])


def two_sided(changes: Sequence[tuple[FindAnswer, int]]) -> str | None:
    """Return a note if one revision made some metrics better and others worse."""
    metrics: dict[str, list[str]] = {}
    for answer, number in changes:
        metrics.setdefault(change_facts(answer, number).tone, []).append(answer.name)
    if not ("better" in metrics and "worse" in metrics):
        return None
    return f"better in {listed(metrics['better'], 'and')}, worse in {listed(metrics['worse'], 'and')}"


def unchanged(table: FindTable, command: FindCommand) -> Iterator[str]:
    """Yield the metrics without a change, and those that are unclear, with the likely or minimum detectable change."""
    none = [answer for answer in table.answers if answer.answer.verdict == "none"]
    if none:
        for scale, unit in dict.fromkeys((each.answer.scale, each.unit_of_differences) for each in none):
            alike = [each for each in none if (each.answer.scale, each.unit_of_differences) == (scale, unit)]
            least = amount(max(each.answer.minimum_detectable for each in alike), scale, unit)
            yield f"No change of {least} or more: {listed((answer.name for answer in alike), 'and')}"
    for answer in table.answers:
        if answer.unclear:
            likely = [each for each in answer_facts(answer).doubts if each not in _further(answer)]
            parts = (*likely, answer.answer.reason, detectable_words(answer, command))
            yield f"Unclear: {answer.name}: {'; '.join(part for part in parts if part)}"


def _unexplained(table: FindTable) -> Iterator[str]:
    """Yield the account of each metric whose changes certainly do not explain the whole difference of the ends."""
    for answer in table.answers:
        rest, account = answer.answer.rest, answer_facts(answer).account
        if account and rest is not None and rest.is_certain:
            yield f"{answer.name}: {account}"


def table_reservations(table: FindTable) -> Iterator[str]:
    """Yield what the evidence for all changes leaves open, each line once with its metrics."""
    metrics: dict[str, dict[str, None]] = {}
    for answer in table.answers:
        for number in range(len(answer.answer.changes)):
            for line in certificate_words(change_facts(answer, number))[1:]:
                metrics.setdefault(line, {})[answer.name] = None
    changed = {answer.name for answer in table.answers if answer.answer.changes}
    for line, names in metrics.items():
        yield line if set(names) == changed else f"{listed(names, 'and')}: {line}"


def _further(answer: FindAnswer) -> tuple[str, ...]:
    return further_doubts(answer_facts(answer))


def table_doubts(table: FindTable) -> Iterator[str]:
    """Yield likely changes and broken ranges of all metrics, each line once."""
    metrics: dict[str, list[str]] = {}
    for answer in table.answers:
        for line in _further(answer):
            yield f"{answer.name}: {line}"
        for line in broken_range_words(answer):
            metrics.setdefault(line, []).append(answer.name)
    for line, names in metrics.items():
        about = "" if len(names) == len(table.answers) else f" (for {listed(names, 'and')})"
        yield f"{line}{about}"


def table_noise_words(table: FindTable) -> Iterator[str]:
    """Yield how the noisy samples of a search for several metrics were treated; invocations count once."""
    groups = {
        (each.target.benchmark, each.target.variant, getattr(each.target, "points", ())): each
        for each in table.answers
    }
    discarded = sum(each.discarded for each in groups.values())
    if discarded:
        yield f"discarded and repeated {counted(discarded, 'noisy sample')}"
    none = any(each.answer.verdict == "none" for each in table.answers)
    mostly = any(each.mostly_noisy for each in groups.values())
    yield from noisy_words(sum(each.noisy for each in groups.values()), no_change=none, mostly=mostly)


def _row(answer: FindAnswer, number: int, *, with_culprit: bool) -> tuple[str, ...]:
    change = change_facts(answer, number)
    return (
        culprit_words(change).removesuffix(",") if with_culprit else "",
        answer.name,
        "of unknown size" if change.effect is None else moved(change.effect, change.unit),
        change.tone,
        levels_of(change),
        probability(answer.answer.changes[number].confidence),
    )


def _candidates(answer: FindAnswer, number: int) -> str:
    """Return the short id of a change's culprit, or those of the first and the last candidate."""
    candidates = change_facts(answer, number).candidates
    first, last = candidates[0].short, candidates[-1].short
    return first if first == last else f"{first} to {last}"


def _merges(changes_by_culprit: Iterable[Sequence[tuple[FindAnswer, int]]]) -> Iterator[str]:
    """Yield the origin of the changes of merges, once for each merge."""
    printed: set[str] = set()
    for changes in changes_by_culprit:
        for answer, number in changes:
            for line in inside_words(answer.inside[number]) if number in answer.inside else ():
                if line not in printed:
                    printed.add(line)
                    yield line


def print_find(answer: FindAnswer | FindTable, command: FindCommand, *, elapsed: float = 0.0) -> None:
    """Print the result of a search: answer, values, cost, unusable revisions, next commands.

    `elapsed` are the seconds that the command took; 0 if they are unknown.
    """
    if isinstance(answer, FindTable):
        print_table(answer, command, elapsed=elapsed)
    else:
        _print_answer(answer, command, elapsed)
    search = f"--search {answer.shown_as}".rstrip()
    for line in (
        *next_commands(answer, command),
        next_line(f"perftrail show{shell_words(command.study)} {search}    how the search went"),
    ):
        output().print(Text(line, style="dim"))


def print_run(report: RunReport, *, shared_options: Sequence[str]) -> None:
    """Print the result of a run, and the next command."""
    console = output()
    skipped = (
        f", {report.skipped} skipped because a smaller point reached its limit" if report.skipped else ""
    )
    console.print(
        Text(
            f"{report.measured} of {report.cells} points measured{skipped}, "
            f"{counted(report.invocations, 'new invocation')}, {counted(len(report.failures), 'failure')}",
            style="bold",
        )
    )
    for line in pins_words(report.pins):
        console.print(Text(f"  {line}"))
    for each in report.disagreements[:MOST_NAMED]:
        console.print(Text(f"  {_disagreement(each)}", style="bold red"))
    if len(report.disagreements) > MOST_NAMED:
        console.print(Text(f"  and {len(report.disagreements) - MOST_NAMED} more; --json names all"))
    for name, failure in list(report.failures.items())[:MOST_NAMED]:
        console.print(Text(f"  {name}: {failure_words(failure)}"))
        for line in further_lines(failure):
            console.print(Text(f"    {line}"))
    if len(report.failures) > MOST_NAMED:
        console.print(Text(f"  and {len(report.failures) - MOST_NAMED} more; --json names all"))
    for skipped_revisions in report.skipped_revisions:
        console.print(Text(f"skipped {skipped_words(skipped_revisions)}"))
    command, purpose = "show", "the results"
    if report.to_correct and not report.measured:
        command, purpose = (
            "check --try 3",
            f"builds and runs three revisions, after you correct {report.to_correct}",
        )
    console.print(
        Text(next_line(f"perftrail {command}{shell_words(shared_options)}    {purpose}"), style="dim")
    )


def _disagreement(disagreement: Disagreement) -> str:
    """Return the different values that should be equal, each with the subjects that printed it."""
    values = (
        f"{value:.17g} ({escaped(listed(map(str, subjects), 'and'))})"
        for value, subjects in disagreement.subjects_by_value.items()
    )
    at = f" at {escaped(str(disagreement.point))}" if disagreement.point.values else ""
    return f"{disagreement.benchmark}.{disagreement.metric}{at} should be equal, but differs: {', '.join(values)}"


def _print_answer(answer: FindAnswer, command: FindCommand, elapsed: float) -> None:
    console = output()
    console.print(Text(headline(answer), style="bold"))
    for line in pins_words(answer.pins):
        console.print(Text(f"  {line}"))
    if account := answer_facts(answer).account_below_sentence:
        console.print(Text(f"  {account}"))
    said: set[str] = set()
    for number in range(len(answer.answer.changes)):
        for line in _details(answer, number):
            if line not in said:
                console.print(Text(f"  {line}"))
        said.update(certificate_words(change_facts(answer, number))[1:])
    for line in certificate_words(answer_facts(answer)):
        console.print(Text(f"  {line}"))
    for line in (*_further(answer), *broken_range_words(answer)):
        console.print(Text(f"  {line}", style="yellow"))
    console.print()
    console.print(Text("\n".join((cost_words(answer), *elapsed_words(answer, elapsed)))))
    for line in (*_scale_words(answer, command), *noise_words(answer), *reboot_words(answer), *answer.priors):
        console.print(Text(f"{capitalised(line)}."))
    if answer.unusable:
        console.print(Text(unusable_words(answer, answer.unusable)))
    console.print(Text(f"Why it ended: {answer.answer.reason}."))
    if known := detectable_words(answer, command):
        console.print(Text(f"{capitalised(known)}."))


def _scale_words(answer: FindAnswer, command: FindCommand) -> Iterator[str]:
    """Yield how values are compared, unless by their ratio, with the threshold."""
    if answer.answer.scale in COMPARED and isinstance(answer.target, Target):
        threshold = amount(command.threshold, answer.answer.scale, answer.unit_of_differences)
        yield f"{COMPARED[answer.answer.scale]}; the threshold is {threshold}"


def _details(answer: FindAnswer, number: int) -> Iterator[str]:
    """Yield the details of one change: its number, values, candidates and merge."""
    change, facts = answer.answer.changes[number], change_facts(answer, number)
    if len(answer.answer.changes) > 1:
        yield f"{number + 1}. {change_sentence(facts)}"
    if values := levels_of(facts):
        yield values
    yield from certificate_words(facts)
    if other_metrics := also_words(facts):
        yield other_metrics
    if note := note_words(answer, change):
        yield note
    candidates = answer.candidates(change)
    if len(candidates) > 1:
        yield from (revision_name(revision) for revision in candidates[:MOST_NAMED])
        if len(candidates) > MOST_NAMED:
            yield f"and {len(candidates) - MOST_NAMED} more; --json names all"
    if number in answer.inside:
        yield from inside_words(answer.inside[number])
