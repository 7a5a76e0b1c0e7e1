"""What a diagnosis is made of: the signs of a machine, and what each means for measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.measurement import Busy, Conditions
    from perftrail.model.search_record import Json

Grade = Literal["spoils", "may spoil", "unknown", "fine"]
"""How much a finding matters here, the worst first."""

GRADES: tuple[Grade, ...] = ("spoils", "may spoil", "unknown", "fine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing about a machine: how it is here, what that costs and who says so, how to change it.

    `source` is ``measured`` or names where it is written. `fix`: `--fix` changes it for a while.
    """

    name: str
    grade: Grade
    here: str
    cost: str = ""
    source: str = ""
    remedy: str = ""
    fix: bool = False

    def as_json(self) -> dict[str, Json]:
        """The finding as `doctor --json` prints it."""
        return {
            "name": self.name,
            "grade": self.grade,
            "here": self.here,
            "cost": self.cost,
            "source": self.source,
            "remedy": self.remedy,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """All that is known of a machine when it is diagnosed.

    `facts` and `settings` are as the machine tells them, `conditions` of some time in which we did nothing, with
    the `busiest` foreign processes of that time. `clock_seconds` is what reading the clock costs, `cgroups` what
    control groups give the launcher, `fixable` the settings that `--fix` would change. `no_sandbox` says why no
    sandbox can be made, with the remedy on its second line; it is empty when one can, `None` when nobody tried.
    """

    facts: Mapping[str, str]
    settings: Mapping[str, str]
    conditions: Conditions
    busiest: tuple[Busy, ...] = ()
    clock_seconds: float = 0.0
    cgroups: Mapping[str, str | None] = field(default_factory=dict)
    fixable: frozenset[str] = frozenset()
    no_sandbox: str | None = None
