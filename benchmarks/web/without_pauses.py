"""``python -m benchmarks.web.without_pauses …``: the perftrail command with a dashboard that reads without pauses.

With ten million samples, the pauses between snapshots take minutes, and the benchmark would rarely measure the effect
of a snapshot on the pages.
"""

from __future__ import annotations

import sys

from perftrail.cli.main import main
from perftrail.web import studies

if __name__ == "__main__":
    studies.PAUSE_FACTOR = 0.0
    sys.argv[0] = "perftrail"
    main()
