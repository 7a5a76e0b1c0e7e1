"""The forms in which a comparison is written for others, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perftrail.report.gates.junit import to_junit
from perftrail.report.gates.markdown import to_markdown
from perftrail.report.gates.metrics import to_metrics
from perftrail.report.gates.plain import to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.report.gates.result import Gate

FORMATS: Mapping[str, Callable[[Gate], str]] = {
    "plain": to_plain,
    "github": to_markdown,
    "gitlab": to_markdown,
    "junit": to_junit,
    "metrics": to_metrics,
    "json": lambda gate: json.dumps(gate.as_json(), indent=1) + "\n",
}
"""What writes each; ``metrics`` is the text that GitLab shows as a metrics report."""
