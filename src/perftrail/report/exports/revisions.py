"""One file for each revision, named after it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.search_record import Json


def each_revision(
    samples: Sequence[Exported], document: Callable[[Sequence[Exported]], Json], *, ending: str = ".json"
) -> dict[str, bytes]:
    """Write a JSON document of each revision's samples; what has nothing to say of one is left out."""
    by_revision: dict[str, list[Exported]] = defaultdict(list)
    for sample in samples:
        by_revision[sample.subject.revision.id].append(sample)
    files: dict[str, bytes] = {}
    for id, those in by_revision.items():
        told = document(those)
        if told:
            name = file_name(those[0].subject.revision.label or id, files, ending)
            files[name] = f"{json.dumps(told, indent=2, ensure_ascii=False)}\n".encode()
    return files


def file_name(text: str, taken: Collection[str], ending: str, *, below: str = "") -> str:
    """Make a file's name of any text, unlike those taken; no name leads out of the directory `below`.

    >>> file_name("../v1.0", (), ".json"), file_name("a", ["b/a.csv"], ".csv", below="b/")
    ('v1.0.json', 'b/a-2.csv')
    """
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", text)[:80].strip("-.") or "revision"
    number, unique = 2, f"{below}{name}{ending}"
    while unique in taken:
        unique, number = f"{below}{name}-{number}{ending}", number + 1
    return unique
