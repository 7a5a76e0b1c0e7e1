"""``python -m tests.campaign.planted_leak …``: the command line, which leaves a file open for each stored outcome."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from perftrail.cli.main import main
from perftrail.store.sql import SqlStore

if TYPE_CHECKING:
    from perftrail.model.measurement import Outcome

added = SqlStore.add


def add_and_leak(store: SqlStore, outcome: Outcome) -> None:
    os.open("/dev/null", os.O_RDONLY)
    added(store, outcome)


if __name__ == "__main__":
    SqlStore.add = add_and_leak  # type: ignore[method-assign, assignment] # the planted defect
    sys.argv[0] = "perftrail"
    main()
