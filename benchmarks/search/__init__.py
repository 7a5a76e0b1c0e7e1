"""Searches against each other over the same simulated histories; run `python -m benchmarks.search --help`."""

import os

# Set before numpy loads: with a worker on each core, more threads inside each would only be in the way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
