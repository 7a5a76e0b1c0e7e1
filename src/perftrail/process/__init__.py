"""Start processes through the launcher, a small C program, account for them, and describe the machine."""

from __future__ import annotations

from perftrail.process.launcher import Launcher, launcher_path
from perftrail.process.preloaded import remove_left_over_count_files
from perftrail.process.protocol import Capabilities
from perftrail.process.sandboxed_launcher import LauncherSandbox

__all__ = ["Capabilities", "Launcher", "LauncherSandbox", "launcher_path", "remove_left_over_count_files"]
