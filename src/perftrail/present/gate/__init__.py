"""The forms in which a comparison is written for others, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perftrail.present.gate.junit import to_junit
from perftrail.present.gate.markdown import to_markdown
from perftrail.present.gate.metrics import to_metrics
from perftrail.present.gate.plain import to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.results.gate import Gate

FORMATS: Mapping[str, Callable[[Gate], str]] = {
    "plain": to_plain,
    "github": to_markdown,
    "gitlab": to_markdown,
    "junit": to_junit,
    "metrics": to_metrics,
    "json": lambda gate: json.dumps(gate.as_json(), indent=1) + "\n",
}
"""What writes each; ``metrics`` is the text that GitLab shows as a metrics report."""
