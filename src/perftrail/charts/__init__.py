"""Charts: pure functions from results to Vega-Lite specifications, which are plain dicts.

- `frame`: chart type, axes, themes, palette and thinning.
- `history`: a metric along a history; `posterior`: belief of a search.
- `curve`: a metric against a parameter, and speed-up.
- `comparison`: effects of subjects; `heatmap`: benchmarks by subjects; `samples`: scatter of samples.
"""
