"""``python -m benchmarks.web.restless …``: the command line itself, whose dashboard reads a store again without a rest.

A snapshot of ten million samples is followed by minutes of rest, and what it costs the pages to take one would be seen
seldom.
"""

from __future__ import annotations

import sys

from perftrail.cli.main import main
from perftrail.web import studies

if __name__ == "__main__":
    studies.REST = 0.0
    sys.argv[0] = "perftrail"
    main()
