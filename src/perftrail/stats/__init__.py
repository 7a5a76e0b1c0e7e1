"""Statistics: pure functions of arrays, each with its assumptions and sources.

- `estimate`: median of one sample, with its interval.
- `comparison`: two subjects from interleaved pairs. `layout_noise`: how much builds of equal code differ.
- `ratios`: geometric means over points, unpaired samples, differences of many metrics.
- `trial`: schedule and results of a measurement without a study.
- `changepoints`: changes along a measured history. `series_noise`: its levels and their correlated noise.
- `curves`, `growth`, `memory`: a metric along a numeric axis.
- `scaling`, `contention`: speed-up with threads, and why it falls short.
- `retained_gain`: share of a gain that a back-port keeps.
"""
