"""Watching a branch: what is known of it, what is measured of each new revision, who is told."""
