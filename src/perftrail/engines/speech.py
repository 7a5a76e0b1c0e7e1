"""What Dask says by itself: nothing, since what matters of it is said here in words, once."""

from __future__ import annotations

import logging

_SPEAKERS = ("distributed", "tornado", "asyncio")


def silence(level: int = logging.CRITICAL) -> None:
    """Keep Dask's own messages below a level to itself; each of its loggers has a level of its own."""
    for name in (*_SPEAKERS, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in _SPEAKERS:
            logging.getLogger(name).setLevel(level)
