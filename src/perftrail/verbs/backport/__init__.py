"""Apply a change to an old revision, and measure the gain that it retains.

- `patch`: find the revisions and fit the patch to the old one.
- `backport`: build and measure old, patched and fixed revisions.
- `result`: the report and its JSON.
"""
