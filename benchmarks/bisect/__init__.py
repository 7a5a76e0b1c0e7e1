"""`git bisect run` and `perftrail find` on real repositories; run `python -m benchmarks.bisect --help`."""
