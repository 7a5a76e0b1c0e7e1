"""The result of a back-port for people: retained gain and cost, or the files that prevent it."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from rich.text import Text

from perftrail.model.program import layout_words, layouts_explain
from perftrail.model.wording import change, counted, escaped, number, percent, quantity
from perftrail.present.answer_sentence import revision_name
from perftrail.present.console import output, plain_table
from perftrail.present.failures import failure_words
from perftrail.present.output_settings import as_started, next_line
from perftrail.present.shared_sentences import (
    capitalised,
    change_words,
    first_named,
    interval_words,
    pairs_by_metric,
)
from perftrail.sources.patched import exclude_options
from perftrail.stats.retained_gain import Share
from perftrail.verbs.backport.patch import maybe_unread
from perftrail.verbs.backport.result import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from perftrail.model.patch import Conflict, LeftOut, Obstacle, Omission, Passage
    from perftrail.model.subject import Revision
    from perftrail.stats.comparison import Comparison
    from perftrail.stats.retained_gain import RetainedGain
    from perftrail.verbs.backport.patch import BackportConflict, FittedPatch
    from perftrail.verbs.backport.result import BackportReport, Judgement, MetricResult


MOST_PASSAGES = 4
MOST_REVISIONS = 4
LONGEST_PATH = 100


def obstacle_words(obstacle: Obstacle, *, old: str) -> Iterator[str]:
    """Yield the conflicts in one file and the revisions that caused them, line by line."""
    path = escaped(obstacle.path, longest=LONGEST_PATH)
    match obstacle.clash:
        case "absent":
            yield f"{path}: {old} has no such file"
        case "deleted":
            yield f"{path}: the change removes this file, and {old} has another version of it"
        case "added":
            yield f"{path}: the change adds this file, and {old} has another file of that name"
        case "rejected":
            yield f"{path}: the lines that the patch changes are not in this file"
        case "changed":
            yield f"{path}: {old} has other lines at the place of the change"
    for passage in obstacle.passages[:MOST_PASSAGES]:
        yield f"    {_line_numbers(passage)}"
        yield from _caused_by("revisions that changed these lines since then:", passage.since)
        yield from _caused_by(
            f"revisions that changed these lines on the branch of {old}:", passage.only_on_old_branch
        )
    if len(obstacle.passages) > MOST_PASSAGES:
        yield f"    and {len(obstacle.passages) - MOST_PASSAGES} more places; --json names all"
    if obstacle.since:
        yield from _caused_by("revisions that added or changed this file since then:", obstacle.since)


def _line_numbers(passage: Passage) -> str:
    if not passage.first:
        return f"conflict marker at line {passage.marker}"
    lines = (
        f"line {passage.first}"
        if passage.first == passage.last
        else f"lines {passage.first} to {passage.last}"
    )
    return f"{lines}, conflict marker at line {passage.marker}" if passage.marker else lines


def _caused_by(words: str, revisions: Sequence[Revision]) -> Iterator[str]:
    if not revisions:
        return
    yield f"      {words}"
    for revision in revisions[:MOST_REVISIONS]:
        yield f"        {revision_name(revision)}"
    if len(revisions) > MOST_REVISIONS:
        yield f"        and {len(revisions) - MOST_REVISIONS} more"


MOST_COSTS = 2
MOST_NAMED = 5
EXACT = 1e-9
"""A narrower interval means that all samples are equal."""

STYLES: dict[Judgement, str] = {"better": "green", "worse": "red", "same": "", "unclear": "dim"}


def print_report(report: BackportReport, *, file: str | None) -> None:
    """Print the answer, every declared metric, other changes, failures, and the next command."""
    console = output()
    fitted = report.fitted
    console.print(Text(headline(report), style="bold"))
    console.print(Text(f"{_patch_words(fitted)}: {change_words(fitted.patched.patch.files)}"))
    print_details(report)
    if file is not None:
        console.print(Text(f"Patch: {escaped(file, longest=1000)}"))
        console.print(Text(f"Next: {_apply_words(fitted, file)}", style="dim"))


def print_details(report: BackportReport) -> None:
    """Print the files that were left out, every declared metric, other changes, and failures."""
    console = output()
    for line in left_out_words(report.fitted.patched.patch.left_out):
        console.print(Text(line))
    console.print()
    shown = [result for result in report.metrics if result.leading or _has_changed(result)]
    if shown:
        console.print(_table(report, shown))
        console.print()
    for line in _notes(report, shown):
        console.print(Text(line))


def _apply_words(fitted: FittedPatch, file: str) -> str:
    """Return the command that applies a patch file, without the files that were left out."""
    target = fitted.patched.base
    # A patch that perftrail computed does not contain these files.
    options = exclude_options(fitted.patched.patch.left_out) if fitted.from_file else []
    words = shlex.join(["git", "apply", *options, file])
    return f"{escaped(words, longest=None)}    in a checkout of {escaped(target.label or target.short)}"


OMISSIONS: dict[Omission, str] = {
    "not selected": "Left out by --paths",
    "excluded": "Left out by --exclude",
    "unaffected": "Left out because of conflicts; no build reads them (build.unaffected_by)",
    "unread": "Left out because of conflicts; the observed builds do not read them",
}
"""Why files of a change were left out, in the order of the report."""


def left_out_words(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Yield one line for each reason for which files were left out.

    >>> from perftrail.model.patch import LeftOut
    >>> list(left_out_words([LeftOut(path="NEWS", why="excluded")]))
    ['Left out by --exclude: NEWS']
    """
    for why, words in OMISSIONS.items():
        names = [escaped(each.path, longest=LONGEST_PATH) for each in left_out if each.why == why]
        if names:
            yield f"{words}: {first_named(names, MOST_NAMED)}"


def _prerequisite_words(conflict: Conflict, *, reverted: bool) -> Iterator[str]:
    """Yield the revisions to back-port or revert first; nothing if there are none."""
    found = conflict.prerequisites
    if not found:
        return
    verb, order = ("Revert", "newest") if reverted else ("Back-port", "oldest")
    yield f"{verb} {f'these revisions first, the {order} first' if len(found) > 1 else 'this revision first'}:"
    yield from (f"    {revision_name(revision)}" for revision in found[:MOST_NAMED])
    if len(found) > MOST_NAMED:
        yield f"    and {len(found) - MOST_NAMED} more; --json names all"


def print_conflict(blocked: BackportConflict, *, source_kind: str, study_file: str | None) -> None:
    """Print why a change does not apply: files, lines and their revisions; prerequisites; the next command.

    `study_file` is that of the command line, `None` if the user named none.
    """
    console = output()
    conflict, onto, reverted = blocked.conflict, blocked.onto, blocked.reverted
    old = escaped(onto.label or onto.short)
    changed = blocked.fix if reverted is None else reverted
    change_name = "the patch" if changed is None else revision_name(changed)
    if reverted is None:
        console.print(Text(f"conflict: {change_name} does not apply to {old}", style="bold"))
    else:
        console.print(Text(f"conflict: {change_name} cannot be reverted on {old}", style="bold"))
    for obstacle in conflict.obstacles:
        console.print()
        for line in obstacle_words(obstacle, old=old):
            console.print(Text(line))
    console.print()
    study = f" {shlex.quote(study_file)}" if study_file else ""
    onto_words = f"--onto {shlex.quote(onto.short)}"
    verb = "backport" if reverted is None else "revert"
    fix = f" {changed.short}" if changed is not None else ""
    for line in left_out_words(conflict.left_out):
        console.print(Text(line))
    for line in _prerequisite_words(conflict, reverted=reverted is not None):
        console.print(Text(line))
    content = "your edits" if conflict.directory_existed else "the applied part of the change"
    console.print(Text(f"The tree of {old} with {content}: {escaped(conflict.directory, longest=1000)}"))
    unread = maybe_unread(conflict)
    if 0 < len(unread) <= MOST_NAMED:
        files = "this file" if len(unread) == 1 else "these files"
        options = " ".join(f"--exclude {shlex.quote(each)}" for each in unread)
        console.print(Text(f"If no build reads {files}, add: {escaped(options, longest=None)}"))
    if source_kind == "git":
        tree = shlex.quote(conflict.directory)
        console.print(Text("Next: resolve the marked conflicts there, then run:", style="dim"))
        console.print(
            Text(
                as_started(
                    f"    git -C {tree} add -A && git -C {tree} diff --cached --binary > resolved.patch\n"
                    f"    perftrail {verb}{fix}{study} --patch resolved.patch {onto_words}"
                ),
                style="dim",
            )
        )
    else:
        console.print(
            Text(
                next_line(
                    f"adapt the patch, then run: perftrail {verb}"
                    f"{fix if reverted is not None else ''}{study} --patch FILE {onto_words}"
                )
            )
        )


def _patch_words(fitted: FittedPatch) -> str:
    """Return the back-ported revisions, their target, and the compared revision."""
    base = fitted.patched.base
    onto = f"onto {escaped(base.label or base.short)}"
    if fitted.fix is None:
        return f"the patch {onto}"
    name = revision_name(fitted.fix)
    return f"the patch {onto}, compared with {name}" if fitted.from_file else f"{name} {onto}"


def headline(report: BackportReport) -> str:
    """Return the answer in one line: the retained gain, and its cost."""
    if not report.measured:
        return f"no answer: {why_failed(report)}"
    costs = cost_words(report)
    leading = report.headline
    if report.fitted.fix is None:
        return f"{_patched_words(report)}{costs}"
    if not report.compared:
        return f"unclear retained gain: the fixed revision could not be measured{costs}"
    if leading is None:
        return f"no gain of the fix was detected{_detectable_words(report)}{costs}"
    return f"{_share_words(leading)}{costs}"


def share(gain: RetainedGain) -> str:
    """Return the retained share in percent with its interval, with as many digits as the interval supports."""
    value, low, high = (100.0 * each for each in (gain.value, gain.low, gain.high))
    if not (math.isfinite(low) and math.isfinite(high)) or high - low < EXACT:
        return f"{value:.0f} %"
    digits = 0 if high - low >= 2.0 else 1
    return f"{value:.{digits}f} % [{low:.{digits}f}, {high:.{digits}f}]"


def _share_words(leading: MetricResult) -> str:
    name = metric_name(leading)
    if leading.retained is None:
        return f"unclear which share of the gain in {name} the patched revision retains"
    result = share(leading.retained)
    match leading.retained.share:
        case Share.NOTHING:
            return f"the patched revision retains nothing of the gain in {name}: {result}"
        case Share.UNCLEAR:
            return f"unclear which share of the gain in {name} the patched revision retains: {result}"
        case Share.PART | Share.WHOLE:
            return f"the patched revision retains {result} of the gain in {name}"


def _patched_words(report: BackportReport) -> str:
    """Return the effect of a patch on the declared metrics, without a fix to compare with."""
    better = [result for result in report.metrics if result.judged(result.patched_against_old) == "better"]
    leading = [result for result in better if result.leading] or better
    if not leading or leading[0].patched_against_old is None:
        return "the patch improves no measured metric"
    best = max(
        leading,
        key=lambda result: (
            abs(math.log(result.patched_against_old.effect)) if result.patched_against_old else 0.0
        ),
    )
    assert best.patched_against_old is not None
    return f"the patch changes {metric_name(best)}: {change(round(best.patched_against_old.effect, 9))}"


def cost_words(report: BackportReport, *, without: MetricResult | None = None) -> str:
    """Return the metrics that a patch makes worse, as the end of a sentence; empty without any."""
    costs = [result for result in report.costs if result is not without]
    parts = [
        f"{change(round(result.patched_against_old.effect, 9))} {metric_name(result)}"
        for result in costs[:MOST_COSTS]
        if result.patched_against_old is not None
    ]
    more = len(costs) - MOST_COSTS
    return f"; costs {' and '.join(parts)}{f' and {more} more' if more > 0 else ''}" if parts else ""


def _detectable_words(report: BackportReport) -> str:
    """Return the minimum detectable change of the answer's metric."""
    compared = [
        result for result in report.metrics if result.leading and result.fixed_against_old is not None
    ]
    wanted = [result for result in compared if report.is_searched(result)]
    chosen = (wanted or compared)[:1]
    if not chosen or chosen[0].fixed_against_old is None:
        return ""
    gain, name = chosen[0].fixed_against_old, metric_name(chosen[0])
    judged = chosen[0].judged(gain)
    if judged == "worse":
        return f": the fix changes {name}: {change(gain.effect)}, which is worse"
    if judged == "same":
        return f" in {name}: the fixed revision equals the old one to within {percent(_bound(gain))}"
    if gain.minimum_detectable is None:
        remedy = f"increase [measure] invocations to {gain.needed_pairs}"
        return f" in {name}: {gain.pairs} pairs are too few for a verdict; {remedy}"
    return f" in {name}: a change below {percent(gain.minimum_detectable)} would not have been detected"


def why_failed(report: BackportReport) -> str:
    """Return why nothing was measured."""
    for missing in report.failures:
        if missing.role is not Role.FIXED:
            stage = "does not build" if missing.failure.stage in ("build", "link") else missing.failure.stage
            which = f"the {report.names[missing.role]} revision"
            return f"{which} {stage}" if stage == "does not build" else f"{which} fails: {stage}"
    return "nothing could be measured"


def _table(report: BackportReport, results: Sequence[MetricResult]) -> Table:
    roles = [role for role in Role if any(role in result.estimates for result in results)]
    undone = report.reverted_gain is not None
    with_share = [result for result in results if (result.loses if undone else result.gains)]
    names = [report.names[role] for role in roles]
    effect = f"{report.names[Role.PATCHED]} / {report.names[Role.OLD]}"
    reverted_name = "lost gain" if undone else "recovered"
    share_name = "retained gain" if report.fitted.reverted is None else reverted_name
    columns = ["metric", *names, effect, *([share_name] if with_share else [])]
    table = plain_table(columns, right=names)
    for result in results:
        values = [Text(_value(result, role)) for role in roles]
        known = result.retained if result in with_share else None
        retained = [Text("" if known is None else share(known))] if with_share else []
        table.add_row(
            Text(metric_name(result, variants=_several(report))), *values, _effect(result), *retained
        )
    return table


def _value(result: MetricResult, role: Role) -> str:
    estimate = result.estimates.get(role)
    return quantity(estimate.value, result.target.unit) if estimate is not None else ""


def _effect(result: MetricResult) -> Text:
    """Return a comparison with the old revision: direction by word and colour, ratio and interval."""
    compared = result.patched_against_old
    if compared is None:
        return Text(escaped(result.note), style="dim")
    judged = result.judged(compared)
    if judged == "same":
        return Text(
            f"same, to within {percent(_bound(compared))}" if _bound(compared) > EXACT else "equal each time"
        )
    if compared.high - compared.low < EXACT:
        return Text(f"× {number(compared.effect)} each time, {judged}", style=STYLES[judged])
    text = f"× {interval_words(compared.effect, compared.low, compared.high)} {judged}"
    return Text(text, style=STYLES[judged])


def _notes(report: BackportReport, shown: Sequence[MetricResult]) -> Iterator[str]:
    omitted = [result for result in report.metrics if result not in shown]
    for judged, words in (("same", "No difference"), ("unclear", "Unclear")):
        names = dict.fromkeys(
            metric_name(result) for result in omitted if result.judged(result.patched_against_old) == judged
        )
        if names:
            yield f"{words}: {first_named(list(names), MOST_NAMED)}"
    for one, other in report.equal:
        yield f"{capitalised(report.names[one])} and {report.names[other]} have equal builds, measured once"
    for missing in report.failures[:MOST_NAMED]:
        yield f"{capitalised(report.names[missing.role])}, {missing.where}: {failure_words(missing.failure)}"
    if len(report.failures) > MOST_NAMED:
        yield f"and {counted(len(report.failures) - MOST_NAMED, 'more failure')}; --json names all"
    if report.skipped:
        yield f"{counted(report.skipped, 'larger point')} skipped, because a smaller one reached its limit"
    yield from dict.fromkeys(
        capitalised(layout_words(linked=result.linked))
        for result in report.metrics
        if result.basis == "builds"
        and any(
            layouts_explain(comparison.effect, comparison.low, comparison.high)
            for comparison in (result.patched_against_old, result.fixed_against_old)
            if result.judged(comparison) in ("better", "worse") and comparison is not None
        )
    )
    if discarded := pairs_by_metric([(metric_name(result), result.discarded) for result in report.metrics]):
        yield f"Discarded and repeated because of other load: {discarded}"
    if noisy := pairs_by_metric([(metric_name(result), result.noisy) for result in report.metrics]):
        yield (
            f"The machine was always busy, so noisy pairs are used: {noisy} "
            "(perftrail doctor shows the processes)"
        )
    counts = [result.replicates for result in report.metrics if result.replicates]
    if counts:
        least = "" if min(counts) == max(counts) else f"{min(counts)} to "
        pairs = f"{least}{counted(max(counts), 'interleaved pair')}"
        new = f", {report.fresh} new" if report.fresh < report.invocations else ""
        for_layouts = ", one for each layout" if any(result.layouts for result in report.metrics) else ""
        cost = f"{counted(report.invocations, 'invocation')}{new}"
        yield f"{pairs}{for_layouts}, {cost}; family-wise error rate 1 %"


def _has_changed(result: MetricResult) -> bool:
    return result.judged(result.patched_against_old) in ("better", "worse")


def metric_name(result: MetricResult, *, variants: bool = False) -> str:
    """Return a metric with its point, and its variant if there are several."""
    point = f" at {escaped(str(result.target.open_point))}" if result.target.open_point.values else ""
    return f"{result.target.text}{point}{f' ({result.target.variant})' if variants else ''}"


def _several(report: BackportReport) -> bool:
    return len({result.target.variant for result in report.metrics}) > 1


def _bound(compared: Comparison) -> float:
    return max(compared.high - 1.0, 1.0 - compared.low)
