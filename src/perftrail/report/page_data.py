"""What a page's script draws and unfolds, as inert text: specifications, and long columns for who asks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.search_record import Json
    from perftrail.report.page import Section, Table


class Columns:
    """Columns of tables and figures by number: each is written once, however many show it.

    >>> columns = Columns()
    >>> [columns.number(["a", "b"]), columns.number([1.5]), columns.number(["a", "b"])]
    [0, 1, 0]
    >>> columns.texts
    ('["a","b"]', '[1.5]')
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, values: Sequence[Json]) -> int:
        """Keep a column and give its number."""
        return self._numbers.setdefault(inert_json(list(values)), len(self._numbers))

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns as JSON, by number."""
        return tuple(self._numbers)

    def of_table(self, table: Table) -> list[int]:
        """Keep a whole table and give the numbers of its columns."""
        return [self.number(column) for column in zip(*table.rows, strict=True)]

    def of_detail(self, section: Section) -> Mapping[str, int]:
        """Keep every point of a thinned figure, in the units it is drawn in; give the numbers by what they are."""
        assert section.figure is not None
        about = section.figure.spec["usermeta"]
        assert isinstance(about, dict)
        divisor = about["divisor"]
        assert isinstance(divisor, float)
        points = section.detail
        columns: dict[str, list[Json]] = {
            "position": [point.position for point in points],
            "subject": [point.subject for point in points],
            "revision": [point.revision for point in points],
            "value": [_short(point.value / divisor) for point in points],
            "low": [_short(point.low / divisor) for point in points],
            "high": [_short(point.high / divisor) for point in points],
            "count": [point.count for point in points],
        }
        return {name: self.number(column) for name, column in columns.items()}


def inert_json(data: Json) -> str:
    r"""Write JSON that ends no script and begins no tag, whatever its texts hold.

    >>> inert_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _short(value: float) -> float:
    """A figure with the digits that can be seen."""
    return float(f"{value:.5g}")
