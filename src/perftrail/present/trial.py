"""The result of `measure` as text and tables within 80 columns."""

from __future__ import annotations

import re
import string
import sys
import textwrap
from typing import TYPE_CHECKING

from rich.text import Text

from perftrail.model.wording import counted, duration, escaped, number, percent, quantity
from perftrail.present.console import output
from perftrail.present.shared_sentences import estimate_words
from perftrail.present.trial_files import ratio
from perftrail.stats.comparison import Verdict
from perftrail.stats.trial import EndReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.measure.trial import InvocationEnded
    from perftrail.model.trial import Trial
    from perftrail.stats.comparison import Comparison
    from perftrail.stats.trial import CommandResult, Contrast, TrialMetric, TrialResult


MOST_SUGGESTED = 10_000
"""Maximum number of runs that perftrail proposes."""


def progress_words(event: InvocationEnded, trial: Trial) -> str:
    """Return the current command, and the remaining work until the next and the last interim analysis."""
    progress = event.progress
    shell = event.sample.entry == len(trial.entries)
    name = "the shell" if shell else escaped(trial.entries[event.sample.entry].name, longest=30)
    least, most = duration(progress.seconds_least), duration(progress.seconds_most)
    span = least if least == most else f"{least} to {most}"
    left = f", {span} left" if progress.runs_most else ""
    return f"measuring {name}: {counted(progress.done, 'run')}{left}"


def warmup_words(result: CommandResult) -> str:
    """Return how many warm-ups were discarded, and how the first one compares; empty without any."""
    warmup = result.warmup
    if warmup.count == 0:
        return "" if warmup.stable else "too few runs to detect a warm-up"
    count = f"{counted(warmup.count, 'warm-up')} discarded"
    first = "it" if warmup.count == 1 else "the first"
    text = (
        f"{count}, {first} took {number(warmup.first_ratio)} times as long"
        if warmup.first_ratio != 1.0
        else count
    )
    return text if warmup.stable else f"{text}; the other runs are not stable either"


def flag_words(result: CommandResult) -> str:
    """Return how many runs have flags, and which."""
    return ", ".join(f"{count} of them flagged {flag}" for flag, count in result.flags.items())


def end_words(result: CommandResult, trial_result: TrialResult) -> str:
    """Return why measuring ended, if that limits the answer, and how to extend it."""
    wall, stopping_rule = result.metrics.get("wall"), trial_result.trial.stopping_rule
    if wall is None:
        return ""
    width = wall.estimate.relative_half_width
    has_no_comparison = not any(group.others for group in trial_result.trial.groups)
    if result.end_reason is EndReason.BUDGET and result.runs < stopping_rule.least:
        return (
            f"the budget of {duration(stopping_rule.budget_seconds)} for each command allowed no more runs; use"
            f" --budget {_seconds(stopping_rule.budget_seconds * stopping_rule.least / max(1, result.runs) * 1.2)}"
            f" for all {stopping_rule.least} runs"
        )
    if result.end_reason is EndReason.BUDGET:
        return f"stopped after {duration(stopping_rule.budget_seconds)} for each command (--budget)"
    if (
        has_no_comparison
        and result.end_reason is EndReason.MOST
        and stopping_rule.least < stopping_rule.most
        and width > stopping_rule.precision
    ):
        return (
            f"the interval is ± {percent(width)}; for ± {percent(stopping_rule.precision)} use"
            f" about --max-runs {_rounded(result.runs * (width / stopping_rule.precision) ** 2)}"
        )
    return ""


def contrast_words(contrast: Contrast, trial_result: TrialResult) -> str:
    """Return a comparison in words: verdict, ratio with interval, or the minimum detectable change."""
    compared = contrast.comparison
    memory = contrast.metric == "peak_memory"
    effect = f"{ratio(compared)} times as {'much' if memory else 'long'}"
    pairs = counted(compared.pairs, "pair")
    match compared.verdict:
        case Verdict.SAME:
            bound = max(compared.high - 1.0, 1.0 - compared.low)
            return f"same: {effect}, no difference of {percent(bound)} or more ({pairs})"
        case Verdict.UNCLEAR:
            return f"unclear: {effect}; {_undetected_words(contrast, pairs, trial_result)}"
        case Verdict.SLOWER:
            return f"{'more' if memory else 'slower'}: {effect} ({pairs})"
        case Verdict.FASTER:
            inverse = "" if memory else f", {number(1.0 / compared.effect)} times as fast"
            return f"{'less' if memory else 'faster'}: {effect}{inverse} ({pairs})"


def _undetected_words(contrast: Contrast, pairs: str, trial_result: TrialResult) -> str:
    minimum = contrast.comparison.minimum_detectable
    if minimum is None:
        return f"{pairs}, too few for any verdict{_needed_words(contrast, trial_result)}"
    more = _more_pairs(contrast, trial_result)
    return f"a change below {percent(minimum)} would not have been detected in {pairs}{more}"


def _needed_words(contrast: Contrast, trial_result: TrialResult) -> str:
    """Return the number of pairs that a verdict needs, or the option that allows them."""
    stopping_rule, needed = trial_result.trial.stopping_rule, contrast.comparison.needed_pairs
    if trial_result.results[contrast.entry].end_reason is not EndReason.MOST:
        return f": {counted(needed, 'pair')} are needed"
    option = "--runs" if stopping_rule.least == stopping_rule.most else "--max-runs"
    return f"; measure more: {option} {max(needed, 2 * stopping_rule.most)}"


def _more_pairs(contrast: Contrast, trial_result: TrialResult) -> str:
    """Return the option that would make an unclear verdict clearer; empty if there is none."""
    stopping_rule = trial_result.trial.stopping_rule
    reason = trial_result.results[contrast.entry].end_reason
    if reason is EndReason.BUDGET:
        return f"; measure more: --budget {_seconds(4.0 * stopping_rule.budget_seconds)}"
    if reason is EndReason.SETTLED:
        return f"; measure more: --min-runs {stopping_rule.most}"
    if reason is EndReason.MOST:
        option = "--runs" if stopping_rule.least == stopping_rule.most else "--max-runs"
        return f"; measure more: {option} {4 * stopping_rule.most}"
    return ""


def contrast_cell(compared: Comparison | None, metric: str) -> str:
    """Return a comparison for a table cell."""
    if compared is None:
        return "no ratio"
    if compared.verdict is Verdict.SAME:
        return "same"
    if compared.verdict is Verdict.UNCLEAR:
        if compared.minimum_detectable is None:
            return "too few pairs"
        return f"unclear ({percent(compared.minimum_detectable)})"
    word = str(compared.verdict)
    if metric == "peak_memory":
        word = "less" if compared.verdict is Verdict.FASTER else "more"
    return f"× {number(compared.effect)} {word}"


def value_words(metric: TrialMetric) -> str:
    """Return a value with its interval, if it has one."""
    return estimate_words(metric.estimate, metric.unit)


def _seconds(seconds: float) -> str:
    """Return a duration for a command line, rounded."""
    minutes = -(-seconds // 60)
    return f"{minutes:.0f}min" if seconds > 60 else f"{-(-seconds // 1):.0f}s"


def _rounded(count: float) -> int:
    """Return a count rounded up to one leading digit, within reasonable limits."""
    size = 10 ** (len(str(int(count))) - 1)
    return min(MOST_SUGGESTED, int(-(-count // size) * size))


WIDTH = 80
"""Maximum width of the output in characters."""

MOST_BLOCKS = 3
"""Up to this number of commands have a paragraph each; more are listed in a table."""

SHOWN = {"wall": "wall", "cpu": "cpu", "peak_memory": "peak memory"}
TREE = "peak_memory_tree"
MORE_IN_TREE = 1.05
"""The memory of all processes is shown if it is more than this many times that of the largest process."""

_ASCII = {"×": "x", "µ": "u", "…": "...", "–": "-", "±": "+-", "→": "->"}
"""Replacements for characters that the output cannot encode."""


def print_trial_result(trial_result: TrialResult) -> None:
    """Print the values of every command, and the comparisons."""
    for line, style in result_lines(trial_result):
        output().print(Text(_encodable(line), style=style))


def result_lines(trial_result: TrialResult) -> list[tuple[str, str]]:
    """Return the answer line by line, each with its style."""
    measured = [result for result in trial_result.results if result.metrics]
    if not measured:
        return [("nothing was measured", "bold")]
    names = _letters(len(trial_result.results))
    answer: list[tuple[str, str]] = []
    if len(trial_result.results) <= MOST_BLOCKS and not _varied(trial_result):
        for letter, result in zip(names, trial_result.results, strict=True):
            answer += [*_block(result, letter if len(names) > 1 else "", trial_result), ("", "")]
        answer += _sentences(trial_result, names)
    else:
        answer += [*_table(trial_result, names), ("", "")]
        answer += _verdicts(trial_result, names)
        answer += _notes(trial_result, names)
    if trial_result.shell is not None and trial_result.shell.metrics:
        answer += [(line, "") for line in _shell(trial_result.shell)]
    if trial_result.stopped:
        answer.append(("interrupted: the results are partial", "yellow"))
    while answer and not answer[-1][0]:
        answer.pop()
    return answer


def _block(result: CommandResult, letter: str, trial_result: TrialResult) -> list[tuple[str, str]]:
    indent = "   " if letter else "  "
    head = textwrap.wrap(
        escaped(result.entry.name, longest=400),
        WIDTH,
        initial_indent=f"{letter}  " if letter else "",
        subsequent_indent=indent,
        break_long_words=True,
    )
    block = [(line, "bold") for line in head or [letter]]
    if result.entry.name != result.entry.command:
        block.append((f"{indent}{escaped(result.entry.command, longest=WIDTH - 4)}", "dim"))
    for metric, shown in SHOWN.items():
        if found_metric := result.metrics.get(metric):
            block.append((f"{indent}{shown:<13}{value_words(found_metric)}", ""))
    tree, largest = result.metrics.get(TREE), result.metrics.get("peak_memory")
    if tree and largest and tree.estimate.value > MORE_IN_TREE * largest.estimate.value:
        block.append((f"{indent}{'all processes':<13} {value_words(tree)} ({tree.method})", ""))
    block += [(f"{indent}{line}", "dim") for line in _wrapped(_run_notes(result, trial_result), len(indent))]
    return block


def _run_notes(result: CommandResult, trial_result: TrialResult) -> str:
    """Return how often a command ran, its warm-ups and flags, and why measuring ended."""
    notes = [
        counted(result.runs, "run"),
        warmup_words(result),
        flag_words(result),
        end_words(result, trial_result),
    ]
    return "; ".join(text for text in notes if text)


def _sentences(trial_result: TrialResult, names: Sequence[str]) -> list[tuple[str, str]]:
    answer: list[tuple[str, str]] = []
    for pair, contrasts in _by_pair(trial_result).items():
        entry, against = pair
        answer.append((f"{names[entry]} against {names[against]}", "bold"))
        for contrast in contrasts:
            shown = f"{SHOWN[contrast.metric]:<13}"
            first, *rest = _wrapped(contrast_words(contrast, trial_result), 3 + len(shown)) or [""]
            answer.append((f"   {shown}{first}", _style(contrast.comparison)))
            answer += [(f"   {'':<13}{line}", _style(contrast.comparison)) for line in rest]
        answer.append(("", ""))
    return answer


def _table(trial_result: TrialResult, names: Sequence[str]) -> list[tuple[str, str]]:
    labels = _labels(trial_result)
    rows = [["", "", "wall", "cpu", "memory", "runs"]]
    for letter, label, result in zip(names, labels, trial_result.results, strict=True):
        wall, cpu, memory = (result.metrics.get(metric) for metric in SHOWN)
        rows.append(
            [
                letter,
                label,
                value_words(wall) if wall else "not measured",
                quantity(cpu.estimate.value, "s") if cpu else "",
                quantity(memory.estimate.value, "B") if memory else "",
                str(result.runs),
            ]
        )
    head, *body = _columns(rows, right=(3, 4, 5), flexible=1)
    title = _common_command(trial_result)
    return [*([(title, "bold")] if title else []), (head, "dim"), *((line, "") for line in body)]


def _verdicts(trial_result: TrialResult, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return one line for each comparison, with a column for each metric."""
    if not trial_result.contrasts:
        return []
    rows = [["", "", *SHOWN.values(), "pairs"]]
    for (entry, against), contrasts in _by_pair(trial_result).items():
        by_metric = {contrast.metric: contrast.comparison for contrast in contrasts}
        cells = [contrast_cell(by_metric.get(metric), metric) for metric in SHOWN]
        pairs = max(compared.pairs for compared in by_metric.values())
        rows.append([names[entry], f"against {names[against]}", *cells, str(pairs)])
    head, *body = _columns(rows, right=(5,), flexible=1)
    text = "×: ratio to the reference; unclear (N %): a change below N % is not detectable"
    return [(head, "dim"), *((line, "") for line in body), (text, "dim"), ("", "")]


def _notes(trial_result: TrialResult, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return notes that do not fit into the table: warm-ups, flags and ends, equal ones once."""
    letters_by_note: dict[str, list[str]] = {}
    for letter, result in zip(names, trial_result.results, strict=True):
        words = [warmup_words(result), end_words(result, trial_result)]
        text = "; ".join(part for part in words if part)
        if text:
            letters_by_note.setdefault(text, []).append(letter)
    texts = [f"{', '.join(letters)}: {text}" for text, letters in letters_by_note.items()]
    for flag in dict.fromkeys(flag for result in trial_result.results for flag in result.flags):
        flagged = sum(result.flags.get(flag, 0) for result in trial_result.results)
        texts.append(
            f"{flagged} of {sum(result.runs for result in trial_result.results)} runs flagged {flag}"
        )
    return [(line, "dim") for text in texts for line in _wrapped(text, 0)]


def _shell(shell: CommandResult) -> list[str]:
    wall = shell.metrics["wall"]
    text = (
        f"The shell alone takes {value_words(wall)} ({counted(shell.runs, 'run')} of "
        f"{escaped(shell.entry.command)!r}, interleaved). Every wall time above includes this time."
    )
    return _wrapped(text, 0)


def _by_pair(trial_result: TrialResult) -> dict[tuple[int, int], list[Contrast]]:
    pairs: dict[tuple[int, int], list[Contrast]] = {}
    for contrast in trial_result.contrasts:
        pairs.setdefault((contrast.entry, contrast.against), []).append(contrast)
    return pairs


def _varied(trial_result: TrialResult) -> bool:
    return any(result.entry.point.values for result in trial_result.results)


def _labels(trial_result: TrialResult) -> list[str]:
    if _common_command(trial_result):
        return [escaped(str(result.entry.point)) for result in trial_result.results]
    return [escaped(result.entry.name, longest=400) for result in trial_result.results]


def _common_command(trial_result: TrialResult) -> str:
    """Return the only command whose parameters vary; empty if there are several."""
    has_names = any(result.entry.name != result.entry.command for result in trial_result.results)
    if has_names or not _varied(trial_result):
        return ""
    written = {result.entry.written for result in trial_result.results}
    return escaped(written.pop(), longest=WIDTH) if len(written) == 1 else ""


def _letters(count: int) -> list[str]:
    if count <= len(string.ascii_uppercase):
        return list(string.ascii_uppercase[:count])
    return [str(number + 1) for number in range(count)]


def _columns(rows: Sequence[Sequence[str]], *, right: Sequence[int], flexible: int) -> list[str]:
    """Align columns; the flexible column shrinks so that the lines fit."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    spare = WIDTH - sum(widths) - 2 * (len(widths) - 1)
    widths[flexible] = max(8, widths[flexible] + min(0, spare))
    return [
        "  ".join(
            _middle_cut(cell, width).rjust(width)
            if column in right
            else _middle_cut(cell, width).ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _middle_cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def _wrapped(text: str, indent: int) -> list[str]:
    """Return lines of a text. A number stays with its unit, and an option is not broken, so that it can be copied."""
    joined = _BEFORE_UNIT.sub("\u00a0", text)  # textwrap does not break at a no-break space
    wrapped = textwrap.wrap(joined, WIDTH - indent, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in wrapped]


_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|min|h|B|[kKMG]i?B|runs?|pairs?|times)(?!\w))")
"""The space between a number and its unit."""


def _style(compared: Comparison) -> str:
    return {Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.UNCLEAR: "yellow"}.get(
        compared.verdict, ""
    )


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encodable(line: str) -> str:
    """Return the line without characters that the output's encoding lacks."""
    if _can_show(line):
        return line
    ascii_line = "".join(_ASCII.get(letter, letter) for letter in line)
    return ascii_line.encode(sys.stdout.encoding or "ascii", errors="replace").decode(
        "ascii", errors="replace"
    )
