"""Removes what killed perftrails left on this machine outside of any study's results."""

from __future__ import annotations

from perftrail.file_claim import remove_left_over as remove_claimed
from perftrail.process.lock_counts import remove_left_over_lock_files
from perftrail.process.sandbox.view import remove_left_over_rooms
from perftrail.workflows.containment import SHORT_LIVED
from perftrail.workflows.trial_sandbox import remove_left_over_homes

WORKERS = "perftrail-workers-"
"""What directories of workers that a command starts on its own machine begin with."""


def remove_left_over() -> None:
    """Remove what nobody who lives has claimed: files that locks are counted in, and directories of sandboxes."""
    remove_left_over_lock_files()
    remove_left_over_homes()
    remove_left_over_rooms(SHORT_LIVED)
    remove_claimed(WORKERS, below=SHORT_LIVED)
