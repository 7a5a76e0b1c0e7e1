"""Build subjects, start benchmarks and collect samples.

- `session`, `sources`, `subjects`, `build_workers`, `sandboxes`: open a study, and build its subjects.
- `invocation_runner`, `invocation`, `noise`, `events`: plan invocations, run them, watch the machine, report events.
- `pairs`: measure interleaved pairs, and evaluate a target in each.
- `trial`: commands and invocations of `perftrail measure`.
- `failure_groups`: group failures by cause, with remedies.
"""
