"""Import samples of other tools as a study.

- `reading`: read the files and arrange their samples.
- `view`: serve them as a view of a study.
"""
