"""Watch a branch: measure each new revision, search for changes, and notify.

- `watch`: check the branch once for new revisions.
- `alarms`: measure new revisions, and detect changes.
- `state`: what was seen, and pending messages, in a file.
- `messages`: write messages and send them.
"""
