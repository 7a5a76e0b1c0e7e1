"""Searches with a profile of both ends as prior, and without; run `python -m benchmarks.profile_prior --help`.

- `planted`: searches of histories with a planted culprit.
- `studies`: searches of any studies, for example of public histories.
- `simulation`: many simulated searches with right and wrong profiles.
"""
