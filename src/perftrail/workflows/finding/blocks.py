"""Blocks of a search: its readings of one boot of the machine, whose levels say nothing of those of another.

Steps are kept with the boot they were taken in. A search that goes on after a reboot is told of a new block
before it asks for anything there, so the first that it asks for is a reference. What was measured before
that boot began is not taken for readings of it, whoever measured it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.machine.facts import FINGERPRINT
from perftrail.search.action import Settled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from perftrail.model.measurement import Machine
    from perftrail.model.trail import Json, SearchRecord
    from perftrail.ports import Store
    from perftrail.search.action import Action
    from perftrail.search.evidence import News
    from perftrail.search.snapshot import Belief
    from perftrail.workflows.finding.journal import Journal
    from perftrail.workflows.finding.probe import Probe

    class Searching(Protocol):
        """A search that can be told of blocks."""

        def tell(self, news: News) -> None:
            """Take news in."""
            ...

        def ask(self) -> Action:
            """Say what to do next."""
            ...

        @property
        def belief(self) -> Belief | None:
            """What is believed now."""
            ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One boot of the machine: its id, its kernel, and when it began (ISO 8601, as the store writes it).

    All are empty where the machine does not tell, or where it makes no difference.
    """

    id: str = ""
    kernel: str = ""
    since: str = ""

    def as_json(self) -> dict[str, Json]:
        """Put it as a step keeps it."""
        return {"boot": self.id, "kernel": self.kernel, "since": self.since}


NOWHERE = Boot()
"""The boot of what is the same in every boot, as counted instructions are."""


def boot_of(machine: Machine) -> Boot:
    """Give the boot that a machine is in."""
    facts = machine.facts
    return Boot(id=facts.get("boot_id", ""), kernel=facts.get("kernel", ""), since=facts.get("booted", ""))


def kept_boot(action: Mapping[str, Json]) -> Boot:
    """Read the boot of a step that is kept; steps of versions that kept none were taken nowhere known."""
    kept = action.get("block")
    if not isinstance(kept, dict):
        return NOWHERE
    return Boot(
        id=str(kept.get("boot", "")), kernel=str(kept.get("kernel", "")), since=str(kept.get("since", ""))
    )


def elsewhere(store: Store, machine: Machine, record: SearchRecord) -> tuple[str, ...]:
    """Say of each other machine on which the same question was asked what it differs in from this one."""
    known = store.machines()
    others = [each.machine for each in store.searches() if each.key == record.key]
    return tuple(
        f"The same question was asked on another machine before ({_differing(known[other], machine)}): "
        "nothing that was measured there was used"
        for other in dict.fromkeys(others)
        if other != machine.id and other in known
    )


def _differing(there: Machine, here: Machine) -> str:
    said = [
        f"{name.replace('_', ' ')} {there.facts.get(name, 'unknown')} there, {here.facts.get(name, 'unknown')} here"
        for name in FINGERPRINT
        if there.facts.get(name) != here.facts.get(name)
    ]
    return "; ".join(said) or f"{there.id} there, {here.id} here"


class InBlocks:
    """A search with the face of itself, told of a new block whenever its next step is in another boot."""

    def __init__(self, search: Searching, probe: Probe, journal: Journal) -> None:
        self._search = search
        self._probe = probe
        self._journal = journal

    def tell(self, news: News) -> None:
        """Take news in."""
        self._search.tell(news)

    def ask(self) -> Action:
        """Say what to do next, in the boot that the journal gives for it."""
        while not isinstance(action := self._search.ask(), Settled):
            block = self._probe.move(self._journal.boot)
            if block is not None:
                self._search.tell(block)
            elif self._journal.agrees(self._probe.revisions[action.position].id, action.readings):
                break
        return action

    @property
    def belief(self) -> Belief | None:
        """What is believed now."""
        return self._search.belief
