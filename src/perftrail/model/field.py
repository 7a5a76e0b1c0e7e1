"""What the study file says of a field beside its Python type, attached with `typing.Annotated`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Form = Literal["plain", "duration", "size", "invocations", "quiet", "texts"]
"""How a value may be written: as its type is, or as text: ``10min``, ``2GiB``, ``5..30``, ``wait 60s``; one text
for a list of one."""

NAME = r"^[A-Za-z0-9_](?:[A-Za-z0-9_+-]|\.(?!\.))*$"
"""A variant or benchmark: it becomes the name of directories and of columns."""

AXIS = r"^[A-Za-z_][A-Za-z0-9_-]*$"
"""A parameter: it stands in placeholders and in brackets of expressions."""

FIGURE = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""A metric: it stands in expressions, where ``-`` is minus and ``.`` follows a benchmark."""

ENVIRONMENT = r"^[^=\x00-\x20]+$"
"""A variable of the environment."""

NAME_RULES: Mapping[str, str] = {
    NAME: "use letters, digits, _, -, + and single dots inside",
    AXIS: "use letters, digits, _ and -, a letter first",
    FIGURE: "use letters, digits and _, a letter first",
    ENVIRONMENT: "a variable has no blank and no = in its name",
}
"""What each kind of name may be made of, for messages."""

LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Key:
    """A field as a key of the study file.

    `doc` is for people who edit the file. `name` is the key when it is not the field's. Bounds hold for
    numbers: `above` and `below` exclude themselves, `least` includes itself. `names` is the regular
    expression for the names in a table of the user's own. `stand_in` takes the place of a required value
    that is wrong, so that everything else is still checked.
    """

    doc: str
    name: str | None = None
    form: Form = "plain"
    above: float | None = None
    below: float | None = None
    least: float | None = None
    names: str | None = None
    stand_in: str | None = None
