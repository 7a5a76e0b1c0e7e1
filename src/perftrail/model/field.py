"""Keys of the study file: description, notation and bounds of a field, attached with `typing.Annotated`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Form = Literal["plain", "duration", "fraction", "size", "invocations", "quiet", "texts", "numbers"]
"""Notation of a value: as its type, or as text, for example ``10min``, ``5%``, ``2GiB``, ``5..30``, ``wait 60s``.
``texts`` also accepts one text for a list; ``numbers`` is a list of numbers and ranges, for example ``0,2-3``.
"""

NAME = r"^[A-Za-z0-9_](?:[A-Za-z0-9_+-]|\.(?!\.))*$"
"""Name of a variant or a benchmark: it becomes part of directory and column names."""

AXIS = r"^[A-Za-z_][A-Za-z0-9_-]*$"
"""Name of a parameter: it occurs in placeholders and in brackets of expressions."""

METRIC = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""Name of a metric: it occurs in expressions, where ``-`` is minus and ``.`` follows a benchmark."""

ENVIRONMENT = r"^[^=\x00-\x20]+$"
"""Name of an environment variable."""

NAME_RULES: Mapping[str, str] = {
    NAME: "use letters, digits, _, -, + and single dots inside",
    AXIS: "use letters, digits, _ and -, a letter first",
    METRIC: "use letters, digits and _, a letter first",
    ENVIRONMENT: "a variable has no blank and no = in its name",
}
"""Allowed characters of each kind of name, for messages."""

LONGEST_NAME = 100
"""Largest number of characters of a name."""


@dataclass(frozen=True, slots=True)
class Key:
    """A dataclass field as a key of the study file.

    `doc` is for people who edit the file. `name` is the key if it differs from the field. The bounds apply to
    numbers: `above` and `below` are exclusive, `least` is inclusive. `names` is the regular expression for
    user-defined names in a table. `stand_in` replaces a wrong required value, so that the rest is still
    checked.
    """

    doc: str
    name: str | None = None
    form: Form = "plain"
    above: float | None = None
    below: float | None = None
    least: float | None = None
    names: str | None = None
    stand_in: str | None = None
