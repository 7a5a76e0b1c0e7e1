"""Build subjects, start benchmarks and collect samples.

- `session`, `sources`, `subjects`, `build_workers`, `sandboxes`: open a study, and build its subjects.
- `invocation_runner`, `invocation`, `noise_policy`, `events`: plan, start and report invocations; watch
  the machine.
- `pairs`: measure interleaved pairs, and evaluate a target in each.
- `trial`: commands and invocations of `perftrail measure`.
- `failure_groups`: group failures by cause; `remedies`: what may repair them.
"""
