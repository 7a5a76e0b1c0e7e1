"""Starts processes through the launcher, a small C program, and says what became of them."""

from __future__ import annotations

from perftrail.launcher.binary import launcher_path
from perftrail.launcher.client import Launcher
from perftrail.launcher.enclosure import Enclosure
from perftrail.launcher.locks import remove_left_over_lock_files
from perftrail.launcher.protocol import Capabilities

__all__ = ["Capabilities", "Enclosure", "Launcher", "launcher_path", "remove_left_over_lock_files"]
