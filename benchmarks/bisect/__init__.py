"""`git bisect run` beside `perftrail find` on real repositories; run `python -m benchmarks.bisect --help`."""
