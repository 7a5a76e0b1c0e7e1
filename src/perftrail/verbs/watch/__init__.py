"""Watch a branch: measure each new revision, search for changes, and notify.

- `watch`: check the branch once for new revisions.
- `batch`: measure new revisions, detect changes, and store the state.
- `messages`: write messages and send them.
"""
