"""A comparison of searches on the same simulated histories; run `python -m benchmarks.search --help`."""

import os

# Set before numpy loads: with a worker on each core, more threads in each would only disturb.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
