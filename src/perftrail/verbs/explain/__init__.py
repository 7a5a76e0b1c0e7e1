"""Explain what differs between a revision and its predecessor.

- `explain`: find the two revisions, profile both, and report the differences.
- `profilers`: plain invocations, locks, allocations, system calls and instructions.
- `functions`: the JSON of compared functions.
"""
