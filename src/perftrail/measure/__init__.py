"""Build subjects, start benchmarks and collect samples.

- `session`, `sources`, `subjects`, `build_workers`, `sandboxes`: open a study, and build its subjects.
- `bench`, `invoker`, `noise`, `events`: plan invocations, run them, watch the machine, report events.
- `pairs`, `units`: measure interleaved pairs, and evaluate a target in each.
- `entries`, `trial`: commands and runs of `perftrail measure`.
- `troubles`: group failures with their remedies.
"""
