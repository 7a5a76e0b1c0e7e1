"""Charts: pure functions from results to Vega-Lite specifications, which are plain dicts.

- `frame`: chart type, axes, themes, palette and thinning.
- `history`: a metric along a history; `posterior`: the belief of a search after each step.
- `curve`: a metric against a parameter, and speed-up.
- `comparison`: effects of subjects; `heatmap`: benchmarks by subjects; `samples`: scatter of samples.
"""
