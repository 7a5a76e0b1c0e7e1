"""Apply a change to an old revision, or revert it on the newest one, and measure the result.

- `patch`: find the revisions and fit the patch to the base.
- `backport`: build and measure the base, the patched revision and the reference.
- `result`: the report of a back-port and its JSON.
- `revert`: the report of a revert and its JSON.
"""
