"""Analyse the stored samples of a study, for `show`, `report`, `compare` and the dashboard.

- `measured`, `rows`, `pairs`, `samples`: read samples, as metrics of subjects at points, and as pairs.
- `changes`, `growth`, `scaling`, `claims`, `gate`: change points, growth along an axis, scaling, verdicts.
- `show`, `remaining_work`, `selection`: everything `show` prints, the remaining work, and filters.
"""
