"""Profiles for https://www.speedscope.app, as its JSON of sampled profiles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.stats.call_tree import CallTree

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(tree: CallTree, *, name: str, unit: str) -> str:
    """Return a file with one profile of each side; `unit` is ``seconds``, or ``none`` for counts."""
    own = tree.own()
    profiles = []
    for side, label in enumerate(("before", "after")):
        nodes = [node for node, costs in enumerate(own) if costs[side] > 0.0]
        weights = [own[node][side] for node in nodes]
        profiles.append(
            {
                "type": "sampled",
                "name": f"{name}: {label}",
                "unit": unit,
                "startValue": 0,
                "endValue": sum(weights),
                "samples": [tree.path(node) for node in nodes],
                "weights": weights,
            }
        )
    return json.dumps(
        {
            "$schema": SCHEMA,
            "name": name,
            "exporter": "perftrail",
            "activeProfileIndex": 1,
            "shared": {
                "frames": [
                    {
                        "name": each.name,
                        **({"file": each.file} if each.file else {}),
                        **({"line": each.line} if each.line else {}),
                    }
                    for each in tree.names
                ]
            },
            "profiles": profiles,
        }
    )
