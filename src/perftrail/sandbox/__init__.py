"""Keeps what is built and run in a sandbox of bubblewrap's: what it sees, what it may write and use."""

from perftrail.sandbox.contained import Contained
from perftrail.sandbox.program import bubblewrap, find_program, refusal
from perftrail.sandbox.room import Room, remove_left_over_rooms
from perftrail.sandbox.view import View, refuse_whole_home

__all__ = [
    "Contained",
    "Room",
    "View",
    "bubblewrap",
    "find_program",
    "refusal",
    "refuse_whole_home",
    "remove_left_over_rooms",
]
