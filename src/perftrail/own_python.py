"""Command lines that start this Python again, for a part of perftrail or a tool such as pip.

They run in directories that other people fill: nothing is imported from there (``-P``), nor from the user's own
packages (``-s``), unless perftrail itself is installed there.
"""

from __future__ import annotations

import site
import sys
from pathlib import Path


def own_python(*words: str) -> list[str]:
    """Return the command line of this interpreter with more words.

    >>> own_python("-m", "pip", "--version")[1:]
    ['-P', '-s', '-m', 'pip', '--version']
    """
    users = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    needs_users = bool(users) and Path(__file__).is_relative_to(users)
    return [sys.executable, "-P", *(() if needs_users else ("-s",)), *words]
